package provider

import (
	"bytes"
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/alicloud-ccm/cloud-provider-alicloud/internal/instruments"
)

// pauseCheck is how often the cloud-config is read for the pause. The kubelet takes up to a minute to bring a changed one into a pod.
const pauseCheck = 5 * time.Second

var pausedGauge = instruments.NewGauge("", "paused",
	"Whether Global.paused of the cloud-config keeps the manager from writing to the cloud: 1 or 0.")

// Metrics are those of this package.
func Metrics() []metrics.Registerable { return []metrics.Registerable{pausedGauge} }

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(Metrics()...) })

// pauseSwitch is Global.paused as the cloud-config has it now. It is off before it begins: only a program that acts on the cloud can be
// paused, and not one that only looks.
type pauseSwitch struct {
	started Config
	on      atomic.Bool
	// read is the file as it was last accepted: parsing it again every few seconds would be more than a hundredth of what an idle manager
	// does.
	read []byte

	mu      sync.Mutex // guards changed
	changed []func()
}

func newPauseSwitch(started Config) *pauseSwitch { return &pauseSwitch{started: started} }

// active reports whether nothing may be written to the cloud.
func (p *pauseSwitch) active() bool { return p.on.Load() }

// follow calls f after each change. f must not wait.
func (p *pauseSwitch) follow(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = append(p.changed, f)
}

// begin sets the switch before it returns, and follows the file until ctx ends.
func (p *pauseSwitch) begin(ctx context.Context) {
	registerMetrics()
	p.set(ctx, p.started.Paused)
	if p.started.Path == "" {
		return
	}
	p.reread(ctx)
	go wait.UntilWithContext(ctx, p.reread, pauseCheck)
}

// reread leaves the switch as it is while the file cannot be read or was emptied: the source of the keys reports that.
func (p *pauseSwitch) reread(ctx context.Context) {
	read, err := os.ReadFile(p.started.Path)
	if err != nil || bytes.Equal(read, p.read) {
		return
	}
	config, err := ReadConfig(bytes.NewReader(read))
	if err != nil || config.isEmpty() && !p.started.isEmpty() {
		return
	}
	p.read = read
	p.set(ctx, config.Paused)
}

func (p *pauseSwitch) set(ctx context.Context, on bool) {
	if p.on.Swap(on) == on {
		return
	}
	if on {
		pausedGauge.Set(1)
		klog.FromContext(ctx).Info("Paused: nothing is written to the cloud until Global.paused of the cloud-config is false")
	} else {
		pausedGauge.Set(0)
		klog.FromContext(ctx).Info("No longer paused")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.changed {
		f()
	}
}
