package chart

import (
	"context"
	"strings"
	"testing"
)

// TestKeyReaders asks a real API server who can read the access key: the script prints it, and doctor reports those who could not read it
// in a Secret.
func TestKeyReaders(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	s.must("kubectl create namespace team && kubectl --namespace team create serviceaccount bot" +
		" && kubectl create clusterrolebinding dev --clusterrole=view --user=dev@example.com" +
		" && kubectl --namespace kube-system create rolebinding bots --clusterrole=view --serviceaccount=team:bot" +
		" && kubectl create clusterrolebinding operators --clusterrole=cluster-admin --group=operators" +
		" && kubectl --namespace team create rolebinding own --clusterrole=view --user=outsider")
	key := []string{"ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "VPC_ID=vpc-emulator"}

	printed := ""
	s.until("the API server knows the bindings", func(context.Context) string {
		printed = s.must("deploy/cloud-config.sh --region cn-hangzhou", key...)
		if !strings.Contains(printed, "dev@example.com") {
			return printed
		}
		return ""
	})
	for _, want := range []string{"these can read the access key in the ConfigMap:\n", "  dev@example.com\n",
		"  system:serviceaccount:team:bot\n", "  operators (group)\n", "use --secret"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the script does not print %q:\n%s", want, printed)
		}
	}
	if strings.Contains(printed, "outsider") || strings.Contains(printed, "kube-system:") ||
		strings.Contains(printed, "system:kube-controller-manager") {
		t.Errorf("the script names others than those who can read the key:\n%s", printed)
	}
	const wrong = "2 who may not read Secrets in kube-system can read it: serviceAccount team/bot, user dev@example.com"
	if report := s.doctorOf(); !strings.Contains(report, wrong) {
		t.Errorf("doctor does not say %q:\n%s", wrong, report)
	}

	printed = s.must("deploy/cloud-config.sh --region cn-hangzhou --secret", key...)
	if !strings.Contains(printed, "these can read the access key in the Secret:\n  operators (group)\n") ||
		strings.Contains(printed, "dev@") || strings.Contains(printed, "use --secret") {
		t.Errorf("the script prints of the Secret:\n%s", printed)
	}
	s.must("kubectl --namespace kube-system delete configmap cloud-config")
	if report := s.doctorOf(); !strings.Contains(report, "there is no such ConfigMap") {
		t.Errorf("doctor does not see that the ConfigMap is gone:\n%s", report)
	}
	printed = s.must("deploy/cloud-config.sh --region cn-hangzhou --secret", append(key, "KUBECONFIG="+s.weak())...)
	if !strings.Contains(printed, "cannot determine who else can read the access key in the Secret") {
		t.Errorf("without the right to list bindings, the script prints:\n%s", printed)
	}
}

// doctorOf is the report of doctor with the administrator's kubeconfig.
func (s *sandbox) doctorOf() string {
	s.Helper()
	got := s.shell("cloud-controller-manager doctor --cloud-provider=alicloud --kubeconfig=$KUBECONFIG --cluster-cidr="+podCIDR,
		"ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret", "ALICLOUD_CLIENT_SCHEME=HTTP",
		"SLB_ENDPOINT="+s.host(), "NLB_ENDPOINT="+s.host(), "VPC_ENDPOINT="+s.host(), "ECS_ENDPOINT="+s.host(),
		"METADATA_ENDPOINT="+s.url+"/metadata/"+s.instance())
	return got.stdout + got.stderr
}

// weak is the kubeconfig of somebody who may write the Secret, and nothing else.
func (s *sandbox) weak() string {
	s.Helper()
	s.must("kubectl --namespace team create serviceaccount writer" +
		" && kubectl --namespace kube-system create role writer --verb=get,create,patch --resource=secrets" +
		" && kubectl --namespace kube-system create rolebinding writer --role=writer --serviceaccount=team:writer")
	path := s.path + "/weak"
	s.must("cp $KUBECONFIG " + path + " && token=$(kubectl --namespace team create token writer)" +
		" && kubectl --kubeconfig " + path + " config set-credentials writer --token=$token >/dev/null" +
		" && kubectl --kubeconfig " + path + " config set-context --current --user=writer >/dev/null")
	return path
}
