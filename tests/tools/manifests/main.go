// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

// Judges Kubernetes manifests as an API server does: every key must be known, and what is left
// after defaults must be valid. Reads YAML documents from stdin; exit code 1 if one is refused.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/rbac"
	_ "k8s.io/kubernetes/pkg/apis/rbac/install"
	rbacvalidation "k8s.io/kubernetes/pkg/apis/rbac/validation"
	strict "sigs.k8s.io/yaml"
)

var decoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

func invalid(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *apps.DaemonSet:
		return appsvalidation.ValidateDaemonSet(o,
			podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *apps.Deployment:
		return appsvalidation.ValidateDeployment(o,
			podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *core.ConfigMap:
		return validation.ValidateConfigMap(o)
	case *core.Namespace:
		return validation.ValidateNamespace(o)
	case *core.Pod:
		return validation.ValidatePodCreate(o,
			podutil.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil))
	case *core.Service:
		return validation.ValidateServiceCreate(o)
	case *core.ServiceAccount:
		return validation.ValidateServiceAccount(o)
	case *rbac.ClusterRole:
		return rbacvalidation.ValidateClusterRole(o, rbacvalidation.ClusterRoleValidationOptions{})
	case *rbac.ClusterRoleBinding:
		return rbacvalidation.ValidateClusterRoleBinding(o)
	}
	return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object), []string{})}
}

// An operator's resource: no API server's code judges it, its Go type does.
func judgeForeign(text []byte) error {
	return strict.UnmarshalStrict(text, &monitoring.ServiceMonitor{})
}

// What kubectl and the server's storage add, beyond defaults, before it is judged.
func fillIn(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Namespace, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		return // these are in no namespace
	case *corev1.Service:
		if o.Spec.ClusterIP != "" && o.Spec.ClusterIPs == nil {
			o.Spec.ClusterIPs = []string{o.Spec.ClusterIP}
		}
	}
	if o, err := meta.Accessor(object); err == nil && o.GetNamespace() == "" {
		o.SetNamespace(corev1.NamespaceDefault)
	}
}

// judge returns what the document is, and why it is refused.
func judge(text []byte) (string, error) {
	var head v1.PartialObjectMetadata
	if err := yaml.Unmarshal(text, &head); err != nil {
		return "?", err
	}
	name := head.Kind + "/" + head.Name
	if head.Kind == "ServiceMonitor" {
		return name, judgeForeign(text)
	}
	object, kind, err := decoder.Decode(text, nil, nil)
	if err != nil {
		return name, err
	}
	legacyscheme.Scheme.Default(object)
	fillIn(object)
	internal := kind.GroupVersion()
	internal.Version = runtime.APIVersionInternal
	if object, err = legacyscheme.Scheme.ConvertToVersion(object, internal); err != nil {
		return name, err
	}
	return name, invalid(object).ToAggregate()
}

func main() {
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	status, count := 0, 0
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		name, err := judge(text)
		count++
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
			status = 1
		} else {
			fmt.Println(name)
		}
	}
	if count == 0 {
		fmt.Fprintln(os.Stderr, "no document")
		status = 1
	}
	os.Exit(status)
}
