package slb

import (
	"context"
	"strings"

	"k8s.io/klog/v2"
)

// note writes to the log what is not there yet: every pass comes to the same.
func (m *memory) note(ctx context.Context, found []string) {
	text := strings.Join(found, "; ")
	if text != "" && text != m.noted {
		klog.FromContext(ctx).Info("Some annotations do not act as they read", "notes", text)
	}
	m.noted = text
}
