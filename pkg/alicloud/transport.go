package alicloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// maxAnswer bounds an answer. The largest real one, a page of instances, has less than 1 MiB.
const maxAnswer = 64 << 20

// answerTransport gives the SDK's requests the caller's context, and lets only answers of the API through.
type answerTransport struct {
	ctx  context.Context //nolint:containedctx // lives for one call; the SDK offers no other way in
	next http.RoundTripper
}

// RoundTrip fails for an answer without a RequestId. The SDK takes an empty body for success and an empty list, and follows
// the redirect of a proxy to its page: one such answer would say that every resource is gone.
func (t answerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request.WithContext(t.ctx))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	if !isAnswer(body) {
		return nil, &foreignAnswerError{status: response.StatusCode, size: len(body)}
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

// isAnswer reports whether the API wrote the body. Every answer of it, good or bad, is an object with a RequestId; a Code is
// text, and the SDK panics where it is not.
// Source: https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism.
func isAnswer(body []byte) bool {
	var answer struct {
		RequestID string `json:"RequestId"`
		Code      string
		Message   string
	}
	return json.Unmarshal(body, &answer) == nil && answer.RequestID != ""
}

// foreignAnswerError says that something other than the API answered, for example a proxy. It does not quote the body: a proxy's
// page may show the URL of the request with its signed parameters.
type foreignAnswerError struct {
	status, size int
}

func (e *foreignAnswerError) Error() string {
	return fmt.Sprintf("HTTP %d %s with %d bytes that are not an answer of the API: they have no RequestId; a proxy or a gateway on the way may have sent them",
		e.status, http.StatusText(e.status), e.size)
}
