package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
)

// The parts of an SPDX 2.3 document that are used here. https://spdx.github.io/spdx-spec/v2.3/
type (
	spdxDocument struct {
		SPDXVersion       string             `json:"spdxVersion"`
		DataLicense       string             `json:"dataLicense"`
		SPDXID            string             `json:"SPDXID"`
		Name              string             `json:"name"`
		DocumentNamespace string             `json:"documentNamespace"`
		CreationInfo      spdxCreation       `json:"creationInfo"`
		Packages          []spdxPackage      `json:"packages"`
		Relationships     []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		SPDXID           string         `json:"SPDXID"`
		Name             string         `json:"name"`
		VersionInfo      string         `json:"versionInfo"`
		DownloadLocation string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		ExternalRefs     []spdxExternal `json:"externalRefs,omitempty"`
	}
	spdxExternal struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		Element string `json:"spdxElementId"`
		Type    string `json:"relationshipType"`
		Related string `json:"relatedSpdxElement"`
	}
)

// billOfMaterials lists the modules that the program is linked from, as the program itself reports, and the Go release.
func billOfMaterials(p program, version string, binary []byte) ([]byte, error) {
	info, err := buildinfo.Read(bytes.NewReader(binary))
	if err != nil {
		return nil, fmt.Errorf("bill of materials: %w", err)
	}
	sum := sha256.Sum256(binary)
	document := spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: p.name,
		DocumentNamespace: "https://github.com/alicloud-ccm/cloud-provider-alicloud/sbom/" + p.name + "/" + hex.EncodeToString(sum[:]),
		// The clock must not get into the bytes.
		CreationInfo: spdxCreation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: hack/image"}},
	}
	document.add(info.Main.Path, version, "DESCRIBES", document.SPDXID)
	program := document.Packages[0].SPDXID
	document.add("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "DEPENDS_ON", program)
	document.add(rootsModule, rootsVersion(), "CONTAINS", program)
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		document.add(module.Path, module.Version, "DEPENDS_ON", program)
	}
	return json.MarshalIndent(document, "", "  ")
}

func (d *spdxDocument) add(path, version, relation, from string) {
	id := fmt.Sprintf("SPDXRef-Package-%d", len(d.Packages)+1)
	d.Packages = append(d.Packages, spdxPackage{
		SPDXID: id, Name: path, VersionInfo: version, DownloadLocation: "NOASSERTION",
		ExternalRefs: []spdxExternal{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" + version}},
	})
	d.Relationships = append(d.Relationships, spdxRelationship{Element: from, Type: relation, Related: id})
}

// rootsModule is the module that the root certificates come from.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// rootsVersion is the version of the module that the root certificates come from.
func rootsVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == rootsModule {
				return module.Version
			}
		}
	}
	return "unknown"
}
