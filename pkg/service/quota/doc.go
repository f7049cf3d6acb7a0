// Package quota knows the quotas of the account: which ones there are, their published values, and which values hold, as far as that is
// known. It makes no calls.
package quota
