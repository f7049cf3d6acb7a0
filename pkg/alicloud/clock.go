package alicloud

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ServerTime returns the clock of the VPC endpoint, from the header of an answer to an unsigned request. Calls that are
// signed with a clock more than fifteen minutes away are refused.
// Source: https://www.alibabacloud.com/help/en/sdk/product-overview/rpc-mechanism.
func (c *Client) ServerTime(ctx context.Context) (time.Time, error) {
	target := url.URL{
		Scheme: strings.ToLower(c.opts.Endpoints.scheme()), Host: c.opts.Endpoints.host(productVPC, c.opts.Region), Path: "/",
	}
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), http.NoBody)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	response, err := c.opts.Transport.RoundTrip(request)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	defer response.Body.Close()
	date := response.Header.Get("Date")
	if date == "" {
		return time.Time{}, errors.New("ask for the time: the answer has no date")
	}
	now, err := http.ParseTime(date)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask for the time: %w", err)
	}
	return now, nil
}
