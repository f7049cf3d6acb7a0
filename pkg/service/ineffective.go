package service

import (
	"context"
	"strings"

	"k8s.io/klog/v2"
)

// logIneffective writes to the log what is not there yet, because every pass comes to the same. It returns what was written last.
func logIneffective(ctx context.Context, found []string, before string) string {
	text := strings.Join(found, "; ")
	if text != "" && text != before {
		klog.FromContext(ctx).Info("Some annotations have no effect", "notes", text)
	}
	return text
}
