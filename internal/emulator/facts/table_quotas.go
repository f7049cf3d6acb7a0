package facts

func quotas() []Fact {
	const p, action = "quotas", "ListProductQuotas"
	return []Fact{
		behave(p, "no-region", assumed(noSource), "quotas of CLB, NLB and VPC have no dimension; otherwise each region has its own", by(action)),
		behave(p, "usage", assumed(noSource), "usage is counted for the quotas of the account, and not for those of each resource", by(action)),
		behave(p, "default-general", on(pageQuotas), "without QuotaCategory, the list has the general quotas", by(action)),
	}
}
