#pragma once

#include "base/status.hpp"

namespace elastic {

/// Initialises OpenSSL. It is cleaned up after the static objects that are made from here on, so
/// that threads which end with these objects can still release their parts of it.
void prepare_openssl();

/// Checks that OpenSSL, as configured on this machine, can do what connections need: HMAC-SHA256,
/// by a known answer, and with `encrypt` a TLS 1.3 session between two ends in this process. Every
/// program of elastic calls it before it opens or accepts a connection.
///
/// kUnavailable: the message says what fails, and names OpenSSL's configuration file.
Status check_openssl(bool encrypt);

}  // namespace elastic
