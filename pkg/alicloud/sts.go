package alicloud

import "context"

// AccountID returns the account that the keys belong to. Every key may ask for it, whatever its policies:
// https://www.alibabacloud.com/help/en/ram/developer-reference/api-sts-2015-04-01-getcalleridentity.
func (c *Client) AccountID(ctx context.Context) (string, error) {
	out := struct {
		answer
		AccountId string //nolint:revive // name on the wire
	}{answer: newAnswer()}
	if err := c.call(ctx, "GetCallerIdentity", productSTS, params{}, &out); err != nil {
		return "", err
	}
	if out.AccountId == "" {
		return "", out.unusable("GetCallerIdentity", "the answer has no AccountId")
	}
	return out.AccountId, nil
}
