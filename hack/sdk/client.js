// Drives the vendor's clients for Node against an emulator: pop-core (signature 1.0, any product), and the generated clients of ECS and VPC
// (ACS3). The address of the emulator is the first argument. Exits with 1 at the first answer that is not as expected.
'use strict';

const assert = require('node:assert/strict');
const RPC = require('@alicloud/pop-core').RPCClient;
const { Config, Params, OpenApiRequest } = require('@alicloud/openapi-client');
const OpenApi = require('@alicloud/openapi-client').default;
const ecs = require('@alicloud/ecs20140526');
const vpc = require('@alicloud/vpc20160428');
const { RuntimeOptions } = require('@alicloud/tea-util');

const address = process.argv[2];
const region = 'cn-hangzhou';
const keys = { accessKeyId: 'emulator', accessKeySecret: 'emulator-secret' };

// refused checks that a call is refused with a code.
async function refused(call, code) {
  await assert.rejects(call, (error) => {
    assert.equal(error.code, code);
    return true;
  });
}

async function popCore() {
  const slb = new RPC({ ...keys, endpoint: 'http://' + address, apiVersion: '2014-05-15', opts: { method: 'POST' } });
  const call = (action, p) => slb.request(action, { RegionId: region, ...p });
  const lb = (await call('CreateLoadBalancer', { AddressType: 'intranet', VpcId: 'vpc-emulator', VSwitchId: 'vsw-a', LoadBalancerName: 'from node' })).LoadBalancerId;
  const list = await call('DescribeLoadBalancers', { LoadBalancerName: 'from node', PageSize: 10 });
  assert.equal(list.LoadBalancers.LoadBalancer[0].LoadBalancerId, lb);
  await call('SetLoadBalancerName', { LoadBalancerId: lb, LoadBalancerName: 'changed: ü * ~ + &' });
  assert.equal((await call('DescribeLoadBalancerAttribute', { LoadBalancerId: lb })).LoadBalancerName, 'changed: ü * ~ + &');
  await call('TagResources', { ResourceType: 'instance', ResourceId: [lb], Tag: [{ Key: 'a', Value: 'b c' }] });
  const tags = await call('ListTagResources', { ResourceType: 'instance', ResourceId: [lb] });
  assert.deepEqual(tags.TagResources.TagResource.map((t) => [t.TagKey, t.TagValue]), [['a', 'b c']]);
  await call('DeleteLoadBalancer', { LoadBalancerId: lb });
  await refused(call('DescribeLoadBalancerAttribute', { LoadBalancerId: lb }), 'InvalidLoadBalancerId.NotFound');

  const nlb = new RPC({ ...keys, endpoint: 'http://' + address, apiVersion: '2022-04-30', opts: { method: 'POST' } });
  const group = await nlb.request('CreateServerGroup', { RegionId: region, ServerGroupName: 'from node', VpcId: 'vpc-emulator' });
  const groups = await nlb.request('ListServerGroups', { RegionId: region, ServerGroupIds: [group.ServerGroupId] });
  assert.equal(groups.ServerGroups[0].ServerGroupName, 'from node');
  await nlb.request('UpdateServerGroupAttribute', { RegionId: region, ServerGroupId: group.ServerGroupId, Scheduler: 'Wlc' });
  await nlb.request('DeleteServerGroup', { RegionId: region, ServerGroupId: group.ServerGroupId });
}

function config() {
  return new Config({ ...keys, regionId: region, endpoint: address, protocol: 'http' });
}

// openApi drives any action by the generic client, here those of SLB and NLB.
async function openApi() {
  const client = new OpenApi(config());
  const call = async (version, action, query) => {
    const params = new Params({
      action, version, protocol: 'HTTP', pathname: '/', method: 'POST', authType: 'AK', style: 'RPC', reqBodyType: 'formData', bodyType: 'json',
    });
    return (await client.callApi(params, new OpenApiRequest({ query }), new RuntimeOptions({}))).body;
  };
  const slb = (action, query) => call('2014-05-15', action, { RegionId: region, ...query });
  const lb = (await slb('CreateLoadBalancer', { AddressType: 'internet', LoadBalancerName: 'generic' })).LoadBalancerId;
  assert.equal((await slb('DescribeLoadBalancerAttribute', { LoadBalancerId: lb })).LoadBalancerStatus, 'active');
  await slb('DeleteLoadBalancer', { LoadBalancerId: lb });
  await refused(slb('DeleteLoadBalancer', { LoadBalancerId: lb }), 'InvalidLoadBalancerId.NotFound');

  const nlb = (action, query) => call('2022-04-30', action, query);
  const made = await nlb('CreateLoadBalancer', {
    AddressType: 'Intranet', VpcId: 'vpc-emulator', LoadBalancerName: 'generic',
    'ZoneMappings.1.ZoneId': 'cn-hangzhou-a', 'ZoneMappings.1.VSwitchId': 'vsw-a', 'ZoneMappings.2.ZoneId': 'cn-hangzhou-b', 'ZoneMappings.2.VSwitchId': 'vsw-b',
  });
  const id = made.LoadbalancerId;
  assert.equal((await nlb('GetLoadBalancerAttribute', { LoadBalancerId: id })).LoadBalancerName, 'generic');
  await nlb('UpdateLoadBalancerAttribute', { LoadBalancerId: id, LoadBalancerName: 'changed' });
  assert.equal((await nlb('ListLoadBalancers', { 'LoadBalancerIds.1': id })).LoadBalancers[0].LoadBalancerName, 'changed');
  await nlb('DeleteLoadBalancer', { LoadBalancerId: id });
}

async function ecsClient() {
  const client = new ecs.default(config());
  const made = await client.runInstances(new ecs.RunInstancesRequest({
    regionId: region, imageId: 'aliyun_3', instanceType: 'ecs.g7.large', vSwitchId: 'vsw-a', securityGroupId: 'sg-emulator', instanceName: 'from-node', amount: 1,
    tag: [new ecs.RunInstancesRequestTag({ key: 'k', value: 'v' })],
  }));
  const id = made.body.instanceIdSets.instanceIdSet[0];
  const list = await client.describeInstances(new ecs.DescribeInstancesRequest({ regionId: region, instanceIds: JSON.stringify([id]) }));
  const instance = list.body.instances.instance[0];
  assert.deepEqual([instance.instanceName, instance.status, instance.tags.tag[0].tagKey], ['from-node', 'Running', 'k']);
  await client.stopInstance(new ecs.StopInstanceRequest({ instanceId: id, forceStop: true }));
  const group = (await client.createSecurityGroup(new ecs.CreateSecurityGroupRequest({ regionId: region, vpcId: 'vpc-emulator', securityGroupName: 'from-node' }))).body.securityGroupId;
  await client.authorizeSecurityGroup(new ecs.AuthorizeSecurityGroupRequest({
    regionId: region, securityGroupId: group,
    permissions: [new ecs.AuthorizeSecurityGroupRequestPermissions({ ipProtocol: 'TCP', portRange: '80/80', sourceCidrIp: '192.0.2.0/24' })],
  }));
  const rules = await client.describeSecurityGroupAttribute(new ecs.DescribeSecurityGroupAttributeRequest({ regionId: region, securityGroupId: group }));
  assert.equal(rules.body.permissions.permission[0].sourceCidrIp, '192.0.2.0/24');
  await client.deleteSecurityGroup(new ecs.DeleteSecurityGroupRequest({ regionId: region, securityGroupId: group }));
  await client.deleteInstance(new ecs.DeleteInstanceRequest({ instanceId: id, force: true }));
  await refused(client.stopInstance(new ecs.StopInstanceRequest({ instanceId: id })), 'InvalidInstanceId.NotFound');
}

async function vpcClient() {
  const client = new vpc.default(config());
  const table = (await client.createRouteTable(new vpc.CreateRouteTableRequest({ regionId: region, vpcId: 'vpc-emulator', routeTableName: 'from-node' }))).body.routeTableId;
  const tables = await client.describeRouteTableList(new vpc.DescribeRouteTableListRequest({ regionId: region, routeTableId: table }));
  assert.equal(tables.body.routerTableList.routerTableListType[0].routeTableName, 'from-node');
  const eip = (await client.allocateEipAddress(new vpc.AllocateEipAddressRequest({ regionId: region, bandwidth: '5' }))).body.allocationId;
  const list = await client.describeEipAddresses(new vpc.DescribeEipAddressesRequest({ regionId: region, allocationId: eip }));
  assert.equal(list.body.eipAddresses.eipAddress[0].status, 'Available');
  await client.releaseEipAddress(new vpc.ReleaseEipAddressRequest({ regionId: region, allocationId: eip }));
  await client.deleteRouteTable(new vpc.DeleteRouteTableRequest({ regionId: region, routeTableId: table }));
  await refused(client.describeRouteEntryList(new vpc.DescribeRouteEntryListRequest({ regionId: region, routeTableId: table })), 'InvalidRouteTable.NotFound');
}

async function main() {
  const clients = { popCore, openApi, ecsClient, vpcClient };
  let failed = false;
  for (const [name, drive] of Object.entries(clients)) {
    try {
      await drive();
      console.log('ok', name);
    } catch (error) {
      failed = true;
      console.error('FAIL', name, error);
    }
  }
  process.exitCode = failed ? 1 : 0;
}

main();
