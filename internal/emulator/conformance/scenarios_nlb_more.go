package conformance

func nlbMoreScenarios() []Scenario {
	return []Scenario{
		{Name: "nlb/listeners", Product: "nlb", run: nlbListeners},
		{Name: "nlb/refused listeners", Product: "nlb", run: nlbRefusedListeners},
		{Name: "nlb/TLS", Product: "nlb", run: nlbTLS},
		{Name: "nlb/zones", Product: "nlb", run: nlbZoneChanges},
		{Name: "nlb/security groups", Product: "nlb", run: nlbSecurity},
		{Name: "nlb/IPv6", Product: "nlb", Fixture: true, run: func(r *R) {
			p := r.nlbZones("Internet")
			p["AddressIpVersion"], p["VpcId"], p["ZoneMappings.1.VSwitchId"], p["ZoneMappings.2.VSwitchId"] = "DualStack", "vpc-six", "vsw-six-a", "vsw-six-b"
			lb := text(r.do("nlb", "CreateLoadBalancer", p), "LoadbalancerId")
			r.active(lb)
			r.do("nlb", "EnableLoadBalancerIpv6Internet", P{"LoadBalancerId": lb})
			r.do("nlb", "DisableLoadBalancerIpv6Internet", P{"LoadBalancerId": lb})
		}},
	}
}

func nlbListeners(r *R) {
	lb := r.nlb()
	group := r.serverGroup(P{"Protocol": "TCP"})
	answer := r.do("nlb", "CreateListener", nlbListener(lb, group, "TCP", 80))
	r.job(answer)
	listener := text(answer, "ListenerId")
	id := P{"ListenerId": listener}
	r.active(lb)
	r.do("nlb", "GetListenerAttribute", id, shows("nlb.listener-runs", "ListenerStatus", "Running"))
	r.do("nlb", "ListListeners", P{"LoadBalancerIds.1": lb}, shows("", "Listeners.#", 1))
	r.do("nlb", "GetListenerHealthStatus", id)
	r.do("nlb", "DeleteServerGroup", P{"ServerGroupId": group}, refused("nlb.ResourceInUse.ServerGroup"))
	r.do("nlb", "CreateListener", nlbListener(lb, group, "TCP", 80), refused("nlb.DuplicatedParam.listener"))
	r.do("nlb", "StartListener", id, refused("nlb.IncorrectStatus.listener"))
	r.job(r.do("nlb", "StopListener", id))
	r.active(lb)
	r.job(r.do("nlb", "StartListener", id))
	r.active(lb)
	r.job(r.do("nlb", "UpdateListenerAttribute", P{"ListenerId": listener, "IdleTimeout": "100"}))
	r.active(lb)
	r.job(r.do("nlb", "DeleteListener", id))
	r.do("nlb", "GetListenerAttribute", id, refused("nlb.ResourceNotFound.listener"))
}

func nlbRefusedListeners(r *R) {
	lb := r.nlb()
	group, udp := r.serverGroup(P{"Protocol": "TCP"}), r.serverGroup(P{"Protocol": "UDP"})
	anyPort := r.serverGroup(P{"Protocol": "TCP", "AnyPortEnabled": "true", "HealthCheckConfig.HealthCheckEnabled": "false"})
	create := func(fact string, p, change P) {
		for name, value := range change {
			p[name] = value
		}
		r.do("nlb", "CreateListener", p, refused(fact))
	}
	create("nlb.Mismatch.Protocol", nlbListener(lb, udp, "TCP", 80), nil)
	create("nlb.IllegalParam.NonAnyPortListenerConflictWithAnyPortServerGroup", nlbListener(lb, anyPort, "TCP", 80), nil)
	create("nlb.IllegalParam.AnyPortListenerConflictWithNonAnyPortServerGroup", nlbListener(lb, group, "TCP", 0),
		P{"StartPort": "100", "EndPort": "200"})
	create("nlb.IllegalParam.Port", nlbListener(lb, anyPort, "TCP", 0), P{"StartPort": "200", "EndPort": "100"})
	create("nlb.IllegalParam.IdleTimeout", nlbListener(lb, udp, "UDP", 53), P{"IdleTimeout": "100"})
	create("nlb.IllegalParam.ProxyProtocolV2Config", nlbListener(lb, group, "TCP", 80),
		P{"ProxyProtocolEnabled": "true", "ProxyProtocolV2Config": "no JSON"})
	r.job(r.do("nlb", "CreateListener", nlbListener(lb, group, "TCP", 80)))
	r.active(lb)
	p := nlbListener(lb, anyPort, "TCP", 0)
	p["StartPort"], p["EndPort"] = "70", "90"
	r.do("nlb", "CreateListener", p, refused("nlb.Conflict.Port"))
}

func nlbTLS(r *R) {
	upload := func() string {
		return text(r.do("slb", "UploadServerCertificate",
			P{"ServerCertificateName": "conformance", "ServerCertificate": ownCertificate, "PrivateKey": ownKey}), "ServerCertificateId")
	}
	certificate, additional := upload(), upload()
	lb := r.nlb()
	group := r.serverGroup(P{"Protocol": "TCPSSL"})
	anyPort := r.serverGroup(P{"Protocol": "TCPSSL", "AnyPortEnabled": "true", "HealthCheckConfig.HealthCheckEnabled": "false"})
	ranged := nlbListener(lb, anyPort, "TCPSSL", 0)
	ranged["StartPort"], ranged["EndPort"], ranged["CertificateIds.1"] = "1000", "1010", certificate
	r.do("nlb", "CreateListener", ranged, fits("nlb.one-port-over-tls"), refused("nlb.IllegalParam.Port"))
	create := func(fact string, p P) {
		with := nlbListener(lb, group, "TCPSSL", 443)
		for name, value := range p {
			with[name] = value
		}
		r.do("nlb", "CreateListener", with, refused(fact))
	}
	create("nlb.MissingParam.Certificate", nil)
	create("nlb.IllegalParamSize.certificateIds", P{"CertificateIds.1": certificate, "CertificateIds.2": additional})
	create("nlb.ResourceNotFound.Certificate", P{"CertificateIds.1": "cert-conformance-absent"})
	create("nlb.MissingParam.CaCertificate", P{"CertificateIds.1": certificate, "CaEnabled": "true"})
	create("nlb.ResourceNotFound.CaCertificate",
		P{"CertificateIds.1": certificate, "CaEnabled": "true", "CaCertificateIds.1": "cert-conformance-absent"})
	create("nlb.MissingParam.AlpnPolicy", P{"CertificateIds.1": certificate, "AlpnEnabled": "true"})
	create("nlb.ResourceNotFound.securitypolicy", P{"CertificateIds.1": certificate, "SecurityPolicyId": "tls-conformance-absent"})
	p := nlbListener(lb, group, "TCPSSL", 443)
	p["CertificateIds.1"] = certificate
	answer := r.do("nlb", "CreateListener", p)
	r.job(answer)
	r.active(lb)
	more := P{"ListenerId": text(answer, "ListenerId"), "AdditionalCertificateIds.1": additional}
	r.job(r.do("nlb", "AssociateAdditionalCertificatesWithListener", more))
	r.active(lb)
	r.do("nlb", "AssociateAdditionalCertificatesWithListener", more, refused("nlb.ResourceAlreadyAssociated.Certificate"))
	r.do("nlb", "ListListenerCertificates", P{"ListenerId": text(answer, "ListenerId")}, shows("", "Certificates.#", 2))
	r.job(r.do("nlb", "DisassociateAdditionalCertificatesWithListener", more))
}

func nlbZoneChanges(r *R) {
	lb := r.nlb()
	change := func(p P) P {
		with := P{"LoadBalancerId": lb}
		for i := range 2 {
			n := string(rune('1' + i))
			with["ZoneMappings."+n+".ZoneId"], with["ZoneMappings."+n+".VSwitchId"] = r.env.Zones[i], r.env.VSwitches[i]
		}
		for name, value := range p {
			with[name] = value
		}
		return with
	}
	r.do("nlb", "UpdateLoadBalancerZones", change(P{"ZoneMappings.1.PrivateIPv4Address": "10.1.200.200"}),
		refused("nlb.OperationDenied.ProtectedPrivateIPv4AddressChanged"))
	if r.env.Disabled.ID != "" {
		r.do("nlb", "UpdateLoadBalancerZones", change(P{"ZoneMappings.1.VSwitchId": "vsw-a2"}), refused("nlb.OperationDenied.ZoneVSwitchChanged"))
	}
	r.job(r.do("nlb", "UpdateLoadBalancerZones", change(nil)))
}

func nlbSecurity(r *R) {
	lb, group := r.nlb(), r.securityGroup("normal")
	p := P{"LoadBalancerId": lb, "SecurityGroupIds.1": group}
	r.do("nlb", "LoadBalancerLeaveSecurityGroup", p, refused("nlb.ResourceNotAssociated.SecurityGroup"))
	r.job(r.do("nlb", "LoadBalancerJoinSecurityGroup", p))
	r.active(lb)
	r.do("nlb", "LoadBalancerJoinSecurityGroup", p, refused("nlb.ResourceAlreadyAssociated.SecurityGroup"))
	r.do("ecs", "DeleteSecurityGroup", P{"SecurityGroupId": group}, refused("ecs.DependencyViolation"))
	r.job(r.do("nlb", "LoadBalancerLeaveSecurityGroup", p))
}
