# Bullpen's commands. `make help` lists them.
#
# Everything that is built goes into bin/ and .cache/, both ignored by git. The Kubernetes binaries (etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, and kubectl where the machine has none) are built once from Go modules into
# .cache/k8s and reused; that takes some minutes the first time. Set KUBEBUILDER_ASSETS to use etcd, kube-apiserver and
# kubectl of your own instead.

SHELL := /bin/sh
CACHE := $(CURDIR)/.cache
K8S := $(CACHE)/k8s
LOCALCLUSTER := $(CACHE)/localcluster
ASSETS := $(if $(KUBEBUILDER_ASSETS),$(KUBEBUILDER_ASSETS),$(K8S))
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# One set of flags for everything, so that packages are compiled once: programs, tools and lint share a build cache.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -buildvcs=false
BUILD := $(CURDIR)/hack/build.sh
LDFLAGS := -s -w -X main.version=$(VERSION)
# The race detector needs a C compiler; without one the tests run without it, and say so.
CC_FOUND := $(shell command -v $${CC:-cc} gcc clang 2>/dev/null | head -n 1)
# SQLite's C code, translated to Go, takes most of the tests' time when it is watched too; it has no goroutines of its own.
RACE := -race -gcflags=github.com/ncruces/go-sqlite3-wasm/...=-race=false
GOTEST := $(if $(CC_FOUND),CGO_ENABLED=1 go test $(RACE),go test) -timeout 20m
DEMO := $(CURDIR)/.demo
# The tests of test/runtimes need the real runtimes, so they have a command of their own: make test-runtimes.
PACKAGES ?= $(filter-out %/test/runtimes,$(shell go list ./...))
RUNTIMES := $(CACHE)/runtimes

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the manager, the agent, ost and the plugin of kubectl into bin/
	@mkdir -p bin
	@$(BUILD) bin/bullpen-manager ./cmd/manager "$(LDFLAGS)"
	@$(BUILD) bin/bullpen-agent ./cmd/agent "$(LDFLAGS)"
	@$(BUILD) bin/ost ./cmd/ost "$(LDFLAGS)"
	@$(BUILD) bin/kubectl-bullpen ./cmd/kubectl-bullpen "$(LDFLAGS)"

.PHONY: localcluster
localcluster: ## build the local cluster and the Kubernetes binaries it runs, where they are missing
	@mkdir -p $(CACHE)
	@cd hack/localcluster && $(BUILD) $(LOCALCLUSTER) . "-s -w"
	@$(LOCALCLUSTER) build --bin $(K8S)

.PHONY: demo
demo: build localcluster ## run a team of agents on a local cluster until its sample work is done
	@$(BUILD) bin/demo ./hack/demo "$(LDFLAGS)"
	@$(BUILD) bin/demo-worker ./hack/demo/worker "$(LDFLAGS)"
	@bin/demo up --dir $(DEMO) --bin $(CURDIR)/bin --localcluster $(LOCALCLUSTER) --kubernetes $(K8S)

.PHONY: demo-down
demo-down: ## stop the demo and remove what it left
	@if [ -x bin/demo ]; then bin/demo down --dir $(DEMO) --localcluster $(LOCALCLUSTER); fi

.PHONY: test
test: build localcluster ## run all tests: unit tests, and integration tests on a real API server
	@$(if $(CC_FOUND),true,echo "test: no C compiler was found, so the race detector is off")
	KUBEBUILDER_ASSETS=$(ASSETS) LOCALCLUSTER=$(LOCALCLUSTER) LOCALCLUSTER_BIN=$(K8S) $(GOTEST) $(PACKAGES)
	cd hack/localcluster && LOCALCLUSTER_BIN=$(K8S) go test -timeout 15m ./...

.PHONY: runtimes
runtimes: ## install the real Claude Code and Codex with npm into .cache/runtimes, where they are missing; tests use them
	@hack/runtimes.sh $(RUNTIMES)

.PHONY: test-runtimes
test-runtimes: build runtimes ## test with the real Claude Code and Codex, and a stand-in for the models that they ask
	RUNTIMES=$(RUNTIMES)/node_modules/.bin $(GOTEST) -count=1 ./test/runtimes/

# Fuzz targets are found by their names. What one finds is kept below testdata/fuzz beside it, and is a case of go test from then on.
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (30s each)
	@grep -rEo --include='*_test.go' --exclude-dir=.cache --exclude-dir=hack '^func Fuzz[A-Za-z0-9]+' . | while IFS=: read -r file target; do \
		target=$${target#func }; echo "=== $$target, $(FUZZTIME)"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname "$$file")" || exit 1; \
	done

.PHONY: bench
bench: build localcluster ## measure, and write the figures into docs/benchmarks.md
	KUBEBUILDER_ASSETS=$(ASSETS) go run ./test/bench --out docs/benchmarks.md

.PHONY: pictures
pictures: ## make the pictures of the documentation anew, with Chromium
	go run ./hack/pictures docs/pictures

.PHONY: generate
generate: bin/controller-gen ## make generated files again: deep copies, CRDs, RBAC, the protocol's schema and page
	bin/controller-gen object:headerFile=hack/boilerplate.go.txt paths=./api/...
	bin/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	bin/controller-gen rbac:roleName=bullpen-manager paths=./controllers/... paths=./access/... paths=./cmd/manager/... output:rbac:dir=config/rbac
	go generate ./office/protocol/...

.PHONY: lint
lint: bin/golangci-lint ## look for mistakes, and for imports that the architecture forbids
	bin/golangci-lint run ./...
	cd hack/localcluster && $(CURDIR)/bin/golangci-lint run --config $(CURDIR)/.golangci.yml ./...

.PHONY: verify
verify: lint ## lint, and fail where a generated file or go.mod is not up to date
	@hack/verify-generated.sh

.PHONY: install
install: ## install the CRDs into the cluster of the current kubeconfig
	kubectl apply --server-side -k config/crd

.PHONY: uninstall
uninstall: ## remove the CRDs, and with them every team, person and work item
	kubectl delete --ignore-not-found -k config/crd

.PHONY: clean
clean: ## remove what was built, but not the Kubernetes binaries
	rm -rf bin $(LOCALCLUSTER)

# Tools are pinned in tools/go.mod and built from their modules.
bin/controller-gen: tools/go.mod
	@mkdir -p bin && cd tools && $(BUILD) ../bin/controller-gen sigs.k8s.io/controller-tools/cmd/controller-gen

bin/golangci-lint: tools/go.mod
	@mkdir -p bin && cd tools && $(BUILD) ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
