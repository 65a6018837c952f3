/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "agent/portable.h"

#include <stddef.h>

#ifdef PYEBPF_STATIC
#include <nss.h>
#include <stdlib.h>
#include <unistd.h>

void portable_init(void)
{
	__nss_configure_lookup("hosts", "files dns");
	__nss_configure_lookup("services", "files");
	__nss_configure_lookup("passwd", "files");
}

const char *portable_ca_file(void)
{
	static const char *const bundles[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL, Amazon Linux */
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* RHEL, without the link above
								      */
		"/etc/ssl/ca-bundle.pem",                            /* SUSE */
		"/etc/ssl/cert.pem", /* Alpine, without ca-certificates */
	};

	if (getenv("SSL_CERT_FILE") || getenv("SSL_CERT_DIR"))
		return NULL;
	for (size_t i = 0; i < sizeof(bundles) / sizeof(*bundles); i++)
		if (!access(bundles[i], R_OK))
			return bundles[i];
	return NULL;
}

#else

void portable_init(void)
{
}

const char *portable_ca_file(void)
{
	return NULL;
}

#endif
