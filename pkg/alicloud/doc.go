// Package alicloud is the project's client of Alibaba Cloud: the only package that imports the vendor's SDK.
//
// It turns calls of the ECS, VPC and CLB OpenAPI into small Go types, classifies every failure in one typed [Error], keeps
// each action below its published rate, and reads the metadata service of the machine it runs on.
//
// It decides nothing: it neither retries a refused call nor caches an answer, because only the caller knows whether a
// repeated write is safe and how old an answer may be.
package alicloud
