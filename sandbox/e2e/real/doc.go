// Package real holds the end-to-end tests on real machines: kubelets, containers and a VPC in the kernel. They need root on Linux and
// the build tag real; `make e2e` and `.ci/run` run them where they can.
//
// The machines run the programs of the project from the archives of images that hack/image writes: SANDBOX_BIN_DIR/images, which `make
// e2e-real` makes.
//
// One cluster serves the whole package. Tests run one after the other and leave it as they found it: two machines that run, and no
// load balancers.
package real
