package chart

import (
	"testing"
)

// TestCredentials starts the manager with each way to give it a key. It does not start with one that the cloud refuses.
func TestCredentials(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, helm4)
	const noKey = "cloudConfig.global.region=cn-hangzhou,cloudConfig.global.vpcid=vpc-emulator,cloudConfig.global.vswitchid=vsw-a"
	s.must("deploy/cloud-config.sh --region cn-hangzhou --secret", "ACCESS_KEY_ID=emulator", "ACCESS_KEY_SECRET=emulator-secret",
		"VPC_ID=vpc-emulator", "VSWITCH_ID=vsw-a")
	s.must("kubectl -n kube-system create secret generic key --from-literal=id=emulator --from-literal=secret=emulator-secret")
	for name, sets := range map[string]string{
		"values":          noKey + ",credentials.accessKeyID=emulator,credentials.accessKeySecret=emulator-secret",
		"secret of a key": noKey + ",credentials.secretName=key,credentials.secretIDKey=id,credentials.secretSecretKey=secret",
		"secret of all":   "cloudConfig.secretName=cloud-config",
		"RRSA": noKey + ",credentials.rrsa.enabled=true,credentials.rrsa.roleARN=acs:ram::1234567890123456:role/emulator-role" +
			",credentials.rrsa.oidcProviderARN=acs:ram::1234567890123456:oidc-provider/emulator",
	} {
		t.Run(name, func(t *testing.T) {
			s := &sandbox{T: t, dir: s.dir, url: s.url, path: s.path, checkout: s.checkout, client: s.client, config: s.config}
			s.must("helm upgrade --install " + release + s.emulated() + " --wait --timeout 2m --set " + sets)
			s.container(system, s.deployment().Spec.Template.Spec).start()
		})
	}
}
