# `make` or `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
BIN := $(CURDIR)/bin
# Without a tag, the version still starts like one: component-base rejects any other at startup.
VERSION ?= $(shell git describe --tags --match 'v*' --dirty 2>/dev/null || echo v0.0.0-$$(git describe --always --dirty 2>/dev/null || echo unknown))

# The programs are static, so that they run in an empty image. They are also stripped (-s -w), so the compiler need not make what
# debuggers read, which is a fifth of its work. Without gRPC's pages of its requests, which need html/template, the linker leaves out
# methods that nothing calls: a third of the programs, and of their memory. Every build of the sandbox's control plane uses the same
# settings; otherwise Go compiles Kubernetes twice. A -tags on a command line has to repeat the tag.
TAG := grpcnotrace
STATIC := CGO_ENABLED=0 GOFLAGS="$${GOFLAGS:-} -gcflags=all=-dwarf=false -ldflags=-s -tags=$(TAG)"
LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(VERSION)
PROGRAMS := cloud-controller-manager provider-initor alicloud-emulator

# Collecting garbage less often saves a tenth of the time of the compiler and of tests with the race detector, and a quarter of that
# of other tests. GOMEMLIMIT keeps the packages with the most parallel tests at the memory that they need otherwise.
LESS_GC := GOGC=400 GOMEMLIMIT=3GiB

GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# Built on first use; its version is that of hack/chart/go.mod.
ACTIONLINT ?= $$(cd hack/chart && $(STATIC) $(GO) tool -n github.com/rhysd/actionlint/cmd/actionlint)

# The tools, among them two Helms, are compiled before the tests' time runs. What the tests do is mostly waiting, so more of them than cores run at once.
CHART_TEST = cd hack/chart && $(STATIC) $(GO) build tool && SANDBOX_BIN_DIR=$(BIN) $(STATIC) $(GO) test -count=1 -timeout 30m -parallel 4 ./...

BENCH_OUTPUT ?= table
BENCH_STEADY ?= 5m

# Registry and namespace that make push pushes images to.
REGISTRY ?=

# NODES: light (default) or real; DEMO_OUTPUT: table (default) or json.
NODES ?= light
DEMO_OUTPUT ?= table

# need(PROGRAM,PACKAGE) fails with one line if a program is missing.
define need
@command -v $(1) >/dev/null || { echo "make $@: the program $(1) is missing: install it, for example with 'apt-get install $(2)' or 'brew install $(2)'" >&2; exit 1; }
endef

# build_sandbox(WHAT,PACKAGES) builds programs of the sandbox's module.
define build_sandbox
cd sandbox && $(STATIC) $(LESS_GC) ../hack/progress.sh '$(1)' $(GO) build -v -ldflags "$$(./version-flags.sh)" -o $(BIN)/ $(2)
endef

.PHONY: help
help: ## List all targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the programs into bin/
	@mkdir -p $(BIN)
	@$(STATIC) $(LESS_GC) hack/progress.sh 'the programs' $(GO) build -v -ldflags '$(LDFLAGS)' -o $(BIN)/ $(PROGRAMS:%=./cmd/%)
	@$(call build_sandbox,the sandbox,./cmd/sandbox)

# What few need, and what takes long to compile.
.PHONY: kubectl machine
kubectl: ## Build kubectl into bin/, for "sandbox kubectl" and tests
	@$(call build_sandbox,kubectl,./cmd/kubectl)

machine: ## Build what real machines run into bin/: kubelet, kube-proxy, Flannel and a workload
	@$(call build_sandbox,the programs of real machines,./cmd/machine ./cmd/testserver)

# Packages whose goroutines share what they write. The race detector makes a test several times slower, and finds nothing where one goroutine
# decides.
RACE := ./pkg/alicloud ./internal/emulator
# Of larger packages, those tests in which several workers run, and small packages. Compiling all of client-go for it takes longer than the
# tests, so make test leaves them out.
RACE_LARGE := ./pkg/slb ./pkg/nlb ./pkg/vpcroute ./pkg/node
RACE_RUN := Controller|Concurrent|FanOut|Soak|AtOnce|TwoLeaders
RACE_SMALL := ./pkg/service ./pkg/service/driver ./pkg/service/queue ./internal/emulator/fabric ./internal/emulator/limits ./internal/healthport ./internal/leadership ./internal/workers
# Of the sandbox, what links a whole control plane for tests of a few functions.
SANDBOX_LARGE := ./bench ./cluster ./cmd/sandbox ./controlplane ./demo

# Linters vet the code (make lint). Tests that run the built programs are never taken from the cache (-count=1), because go test does not notice that a program
# has changed.
UNIT := $(LESS_GC) $(STATIC) $(GO) test -vet=off -timeout 30m
# What runs the programs mostly waits, so the race detector runs beside it.
# A world is goroutines that take turns: with one processor for each test binary it costs a third less than with two. What takes longest is
# begun first.
UNIT_LARGE := ./pkg/slb ./pkg/nlb ./pkg/provider
RACE_TEST := $(LESS_GC) $(GO) test -vet=off -race -ldflags=-s
E2E := $(LESS_GC) SANDBOX_BIN_DIR=$(BIN) $(STATIC) $(GO) test -vet=off -count=1 -timeout 30m
timed = @start=$$SECONDS; ( $(2) ); printf 'make $@: %s: %s s\n' '$(1)' "$$((SECONDS - start))"

.PHONY: test
test: build kubectl ## Test what a change may break: unit tests, a fixed sample of the matrices, the programs end to end, the rendered chart (6 minutes)
	$(call need,cc,gcc)
	$(call timed,unit tests,$(UNIT) -p 3 -cpu 1 -parallel 4 -short $(UNIT_LARGE) $$($(GO) list ./... | grep -vxFf <($(GO) list $(RACE) $(UNIT_LARGE))))
	$(call timed,programs end to end and unit tests with the race detector,$(RACE_TEST) -short -timeout 30m $(RACE) & race=$$!; \
		(cd sandbox && $(E2E) -short -parallel 4 $$($(GO) list ./... | grep -vxFf <($(GO) list $(SANDBOX_LARGE)))) || { wait $$race || true; exit 1; }; \
		wait $$race)
	$(call timed,rendered chart,cd hack/chart && $(E2E) -short ./render)

.PHONY: test-race
test-race: ## Test the engines, the controllers and small packages with the race detector, where several workers run (3 minutes)
	$(call need,cc,gcc)
	$(RACE_TEST) -short -timeout 30m -run '$(RACE_RUN)' $(RACE_LARGE)
	$(RACE_TEST) -short -timeout 30m $(RACE_SMALL)

.PHONY: test-sandbox
test-sandbox: ## Test what of the sandbox links a whole control plane (1 minute)
	cd sandbox && $(E2E) -short $(SANDBOX_LARGE)

# The order is that of cost: what fails early fails cheaply.
.PHONY: test-all
test-all: build kubectl machine ## Test everything: all matrices, storms, two Helms, the commands in the docs, OpenKruise, browsers, real machines (more than an hour; nightly)
	$(call need,cc,gcc)
	$(call timed,unit tests,$(LESS_GC) $(STATIC) $(GO) test -timeout 30m ./...)
	$(call timed,unit tests with the race detector,$(RACE_TEST) -short -timeout 45m ./...)
	$(call timed,images,cd hack/image && $(STATIC) $(GO) test ./...)
	$(call timed,alerts and dashboard,cd hack/monitoring && $(STATIC) $(GO) test ./...)
	$(call timed,Kubernetes specs,cd hack/k8s-e2e && $(STATIC) $(GO) test -count=1 .)
	$(call timed,sandbox,cd sandbox && $(E2E) $$($(GO) list ./... | grep -v /e2e))
	$(call timed,chart,$(CHART_TEST))
	$(MAKE) e2e test-browser test-sdk

.PHONY: chart-test
chart-test: build kubectl ## Test the chart with Helm 3 and 4: render it, validate it, install it into the sandbox; run the commands in the docs (SHORT=1: the newer Helm, without these commands)
	$(if $(SHORT),$(call timed,chart,cd hack/chart && $(E2E) -short -parallel 4 -skip 'TestDocs|TestTutorials|Migration' .),$(CHART_TEST))

.PHONY: test-sdk
test-sdk: ## Test the emulator with the vendor's clients for Node and its newer generic client for Go (needs node and npm; downloads 90 MB)
	$(call need,node,nodejs)
	$(call need,npm,npm)
	@mkdir -p $(BIN)
	$(STATIC) $(GO) build -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cmd/alicloud-emulator
	cd hack/sdk && npm ci --ignore-scripts --no-audit --no-fund
	cd hack/sdk && SANDBOX_BIN_DIR=$(BIN) $(STATIC) $(GO) test -count=1 -v .

.PHONY: test-browser
test-browser: ## Test the emulator's console in headless Chromium (needs the program chromium)
	$(call need,chromium,chromium)
	cd hack/console && $(GO) test -race -count=1 .

.PHONY: test-kubernetes
test-kubernetes: build kubectl ## Test programs and chart with the control planes of three Kubernetes releases, and write the table of results (20 minutes)
	$(STATIC) hack/kubernetes/test.sh $(BIN)

.PHONY: e2e
e2e: build kubectl ## Run the end-to-end tests only, including OpenKruise, fleets of 50 nodes and, as root, real machines (many minutes)
	$(STATIC) hack/kruise/build.sh $(BIN)/kruise
	cd sandbox && $(E2E) -tags fleet,kruise,$(TAG) -p 1 -parallel 1 -v ./e2e/...
	@$(MAKE) image-test
	@if [[ $$(id -u) == 0 ]]; then $(MAKE) e2e-real; else echo 'not root: skipping the tests on real machines, see make e2e-real' >&2; fi

# What a merge must not break on real machines: one story each for CLB, NLB, routes, nodes, the initializer with OpenKruise, and the change from the manifests
# that users have.
STORIES := TestUnderLoad|TestNLBOfPods|TestNetwork|TestRoutesOutliveTheirNodes|TestInitializerOfUsers|TestManifestsOfUsers

.PHONY: e2e-real
e2e-real: build kubectl machine ## Run the end-to-end tests on real machines: kubelets, containers, a VPC in the kernel (REAL=regexp of tests, or stories for the most important ones; root on Linux)
	$(STATIC) hack/kruise/build.sh $(BIN)/kruise
	cd hack/image && $(STATIC) $(GO) run . --binaries $(BIN) --arch "$$($(GO) env GOARCH)" --version $(VERSION) --out $(BIN)/images
	cd sandbox && $(E2E) -timeout 40m -tags real,$(TAG) -v -run '$(if $(filter stories,$(REAL)),$(STORIES),$(REAL))' ./e2e/real

# With E2E_SANDBOX, the files are those of that sandbox. What is missing is said before anything is built.
.PHONY: e2e-cloud-files
e2e-cloud-files:
	@for file in '$(if $(E2E_SANDBOX),E2E_SANDBOX=$(E2E_SANDBOX)/emulator,KUBECONFIG=$(KUBECONFIG))' '$(if $(E2E_SANDBOX),,CLOUD_CONFIG=$(CLOUD_CONFIG))'; do \
		[[ -z "$$file" || -f "$${file#*=}" ]] || { echo "make e2e-cloud: $${file%%=*} is not set to a file of a test cluster (it is '$${file#*=}'), see docs/contributing/e2e-cloud.md" >&2; exit 1; }; \
	done

.PHONY: e2e-cloud
e2e-cloud: e2e-cloud-files build kubectl ## Run end-to-end scenarios on your own test cluster and account (KUBECONFIG, CLOUD_CONFIG; prints the calls and their price, CONFIRM=yes runs them, CLEAN=yes removes what a killed run left; or E2E_SANDBOX=directory of a sandbox)
	cd sandbox && KUBECONFIG='$(abspath $(KUBECONFIG))' CLOUD_CONFIG='$(abspath $(CLOUD_CONFIG))' E2E_OFFICIAL='$(abspath $(E2E_OFFICIAL))' \
		E2E_SANDBOX='$(abspath $(E2E_SANDBOX))' $(E2E) -timeout 3h -tags account,$(TAG) -v -run '^TestAccount$$' ./e2e/account

.PHONY: e2e-k8s
e2e-k8s: build kubectl machine ## Run the load balancer specs of Kubernetes on real machines (PRODUCT=clb|nlb, SPECS=regexp of specs; root on Linux; 15 minutes)
	$(STATIC) hack/k8s-e2e/build.sh $(BIN)/k8s-e2e
	$(BIN)/k8s-e2e/run --bin-dir $(BIN) --build-dir $(BIN)/k8s-e2e --product '$(or $(PRODUCT),clb)' --focus '$(SPECS)'

.PHONY: soak
soak: ## Change Services of both products for hours of virtual time under random faults (SOAK_ARGS="-soak.both.seed=N" to repeat)
	$(call need,cc,gcc)
	$(GO) test -race -count=1 -timeout 120m -v -run '^TestSoakOfBothProducts$$' ./pkg/provider -soak.both.for=2h $(SOAK_ARGS)
	for seed in 1 2 3 4 5 6 7 8; do $(GO) test -count=1 -timeout 10m -v -run '^TestSoakOfGroups$$' ./pkg/provider -soak.groups.for=3m -soak.groups.seed=$$seed || exit 1; done

.PHONY: demo
demo: ## Run the end-to-end demo, from an empty cloud to a working load balancer (NODES=real: on real machines, as root; DEMO_OUTPUT=json for one JSON document)
	@$(MAKE) --no-print-directory build $(if $(filter real,$(NODES)),machine) >&2
	@$(BIN)/sandbox demo --bin-dir $(BIN) --node-kind $(NODES) --output $(DEMO_OUTPUT)

.PHONY: bench
bench: ## Measure figures and compare them with their goals (BENCH=clb|nlb|routes|nodes|initor|scale for one group, BENCH_OUTPUT=json)
	@$(MAKE) --no-print-directory build >&2
	@case '$(BENCH)' in '' | initor) $(STATIC) hack/kruise/build.sh $(BIN)/kruise >&2 ;; esac
	@$(BIN)/sandbox bench --bin-dir $(BIN) --only '$(BENCH)' --steady '$(BENCH_STEADY)' --output '$(BENCH_OUTPUT)'

.PHONY: docs
docs: ## Build the documentation as a static site into bin/site (the first build compiles Hugo: minutes, 400 MB of modules)
	cd hack/site && $(STATIC) $(GO) run . --out $(BIN)/site

.PHONY: docs-serve
docs-serve: docs ## Build the site and serve it at http://127.0.0.1:8000
	$(call need,python3,python3)
	python3 -m http.server --bind 127.0.0.1 --directory $(BIN)/site 8000

.PHONY: docs-test
docs-test: ## Build the site and test it: links, anchors, search, versions; on a phone and in both themes in headless Chromium
	$(call need,chromium,chromium)
	cd hack/site && $(STATIC) $(GO) mod tidy -diff
	cd hack/site && $(STATIC) $(GO) test -count=1 -tags browser,$(TAG) -timeout 20m ./...

.PHONY: demo-picture
demo-picture: build ## Run the demo, and draw what it prints into docs/images/demo.svg
	$(BIN)/sandbox demo --bin-dir $(BIN) >$(BIN)/demo.txt
	cd hack/site && $(STATIC) $(GO) run ./terminal make demo <$(BIN)/demo.txt >../../docs/images/demo.svg

.PHONY: shellcheck
shellcheck: ## Check the shell scripts, except copies of users' scripts in testdata
	$(call need,shellcheck,shellcheck)
	$(call need,git,git)
	shellcheck $$(git ls-files '*.sh' ':!*/testdata/*') .ci/run

.PHONY: actionlint
actionlint: ## Check the workflows of GitHub
	$(ACTIONLINT)

# The modules with code of their own; the others only pin versions.
LINTED := . sandbox hack/chart hack/console hack/image hack/k8s-e2e hack/monitoring hack/sdk hack/site

.PHONY: lint
lint: shellcheck actionlint ## Run golangci-lint on all modules
	for module in $(LINTED); do (cd "$$module" && $(GOLANGCI_LINT) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...); done

# Tests compare generated files with what the code generates, or write them (-update). The chart comes after its templates that show tables of the product.
# Within a package, pages are written after what they show, so nothing runs at once.
define fresh
for module in . hack/chart/render hack/k8s-e2e; do \
	packages=.; [[ "$$module" != . ]] || packages=$$(git grep -l 'golden\.Fresh' -- 'cmd/*_test.go' 'internal/*_test.go' 'pkg/*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,'); \
	(cd "$$module" && $(STATIC) $(GO) test -vet=off -parallel 1 -run 'Fresh$$|^TestGolden$$' $$packages $(1)); \
done
endef

.PHONY: generate
generate: ## Render deploy/ from the chart, and the reference pages from the code
	$(call fresh,-update)

.PHONY: facts
facts: ## Find which tests meet which facts about the cloud, and write that into the generated page (minutes; seconds with TESTS='./pkg/slb -run TestName')
	dir=$$(mktemp -d) && EMULATOR_FACTS=$$dir $(GO) test -count=1 -timeout 1h $(or $(TESTS),./pkg/... ./internal/emulator/...) && \
		$(GO) test ./internal/emulator/reference -run TestCoverageIsFresh -merge $$dir $(if $(TESTS),-add) -update && rm -r $$dir
	$(GO) test ./internal/emulator/reference -run TestFactsPageIsFresh -update

.PHONY: flips
flips: ## Run the tests of the product while assumed facts about the cloud are false, and write which fail (hours; FLIP=regexp of facts, TESTS=./pkg/name)
	dir=$$(mktemp -d) && EMULATOR_FACTS=$$dir $(GO) test -count=1 -timeout 1h $(or $(TESTS),./pkg/...) && \
		$(GO) test ./internal/emulator/reference -run 'TestFlips$$' -timeout 24h -v -met $$dir -flipping '$(FLIP)' && rm -r $$dir
	$(GO) test ./internal/emulator/reference -run TestFactsPageIsFresh -update

.PHONY: verify
verify: ## Fail if a generated file or a go.mod is stale
	$(call fresh)
	$(GO) test ./pkg/alicloud -run TestActionsAreThoseOfTheCode
	for module in $(filter-out hack/site,$(LINTED)) hack/kruise hack/kubernetes/v*; do (cd "$$module" && $(GO) mod tidy -diff); done

.PHONY: image-test
image-test: ## Build the images twice in different places, and with the steps of the Dockerfile: all bytes must be equal; run the emulator alone as in its image (minutes)
	cd hack/image && $(GO) test -count=1 -timeout 30m -tags build -run 'TestBuilds|TestEmulatorRunsAlone' -v .

.PHONY: image
image: ## Build the OCI images of the manager, the initializer and the emulator as tar files in dist/, without a container engine
	cd hack/image && $(GO) run . --root $(CURDIR) --version $(VERSION) --out $(CURDIR)/dist

.PHONY: push
push: ## Build the images and push them, for example REGISTRY=registry.example.com/team, with the credentials of docker login
	@[[ -n '$(REGISTRY)' ]] || { echo 'make push: REGISTRY is not set: set it to a registry and a namespace, for example REGISTRY=registry.example.com/team' >&2; exit 1; }
	cd hack/image && $(GO) run . --root $(CURDIR) --version $(VERSION) --out $(CURDIR)/dist --repository '$(REGISTRY)' --push

.PHONY: vuln
vuln: ## Look for known vulnerabilities with govulncheck; exit code 3 if its database cannot be reached (GOVULNDB for a mirror)
	$(call need,curl,curl)
	hack/vuln.sh

.PHONY: image-scan
image-scan: ## Scan the images in dist/ with trivy or grype; exit code 3 if there is no scanner or no database
	hack/image-scan.sh

.PHONY: release
release: ## Make all files of a release in dist/, for example VERSION=v0.1.0; publishes nothing
	$(call need,git,git)
	hack/release.sh '$(VERSION)'
