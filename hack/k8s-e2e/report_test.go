package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestUnexpected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		spec       spec
		state      string
		note       string
		shouldFail bool
	}{
		{"passes", spec{}, passed, "", false},
		{"breaks", spec{}, failed, "should pass", true},
		{"is skipped", spec{}, skipped, "should pass", true},
		{"cannot pass", spec{obstacle: obstacle{why: "x"}}, failed, "", false},
		{"begins to pass", spec{obstacle: obstacle{why: "x"}}, passed, "passes now", false},
		{"skips itself no more", spec{obstacle: obstacle{why: "x", skips: true}}, failed, "should be skipped", true},
		{"skips itself", spec{obstacle: obstacle{why: "x", skips: true}}, skipped, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.spec.name = "a spec"
			var out strings.Builder
			err := printResults(&out, []result{{spec: c.spec, state: c.state}})
			if (err != nil) != c.shouldFail {
				t.Errorf("error %v", err)
			}
			if !strings.Contains(out.String(), c.note) {
				t.Errorf("%q is not in:\n%s", c.note, out.String())
			}
		})
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	err := compare([]spec{{name: "known"}, {name: "gone"}}, map[string]string{"known": "[x] known", "new": "new [Slow]"})
	for _, want := range []string{`no spec "gone" any more`, `a new spec "new"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := compare([]spec{{name: "known"}}, map[string]string{"known": "known"}); err != nil {
		t.Error(err)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	const name = "[sig-network] LoadBalancers ExternalTrafficPolicy: Local [Feature:LoadBalancer] [Slow] should work from pods"
	if got := plain(name); got != "LoadBalancers ExternalTrafficPolicy: Local should work from pods" {
		t.Errorf("got %q", got)
	}
	if got := plain("a [LinuxOnly] [Slow]"); got != "a" {
		t.Errorf("got %q", got)
	}
}

func TestLibrariesOf(t *testing.T) {
	t.Parallel()
	got := strings.Join(librariesOf("\tlinux-vdso.so.1 (0x00007f23f6bd6000)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f23f6931000)\n"+
		"\t/lib64/ld-linux-x86-64.so.2 (0x00007f23f6bd8000)\n"), " ")
	if got != "/lib/libc.so.6 /lib64/ld-linux-x86-64.so.2" {
		t.Errorf("got %q", got)
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{
		`{"loadBalancers":[{"LoadBalancerId":"lb-1","listeners":[]}],"acls":[{"AclId":"acl-1"}]}`:                                                                                         "load balancer lb-1, access control list acl-1",
		`{"loadBalancers":[],"acls":[],"instances":[{"InstanceId":"i-1"}],"securityGroups":[{"SecurityGroupId":"sg-emulator","SecurityGroupName":"emulator"}]}`:                           "",
		`{"networkLoadBalancers":[{"LoadBalancerId":"nlb-1"}],"serverGroups":[{"ServerGroupId":"sgp-1"}],"securityGroups":[{"SecurityGroupId":"sg-1","SecurityGroupName":"k8s-nlb-a1"}]}`: "load balancer nlb-1, server group sgp-1, security group sg-1",
	} {
		var got left
		if err := json.Unmarshal([]byte(state), &got); err != nil || got.String() != want {
			t.Errorf("%s: got %q, want %q (%v)", state, got, want, err)
		}
	}
}
