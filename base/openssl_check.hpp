#pragma once

#include "base/status.hpp"

namespace elastic {

/// Sets OpenSSL up. It is torn down after the static objects that are made from here on: threads
/// that those end can still release what they hold in it.
void prepare_openssl();

/// Whether OpenSSL, as this machine configures it, does what connections need: a known answer of
/// HMAC-SHA256, which authenticates them, and with `encrypt` one TLS 1.3 session between two ends
/// in this process. Every program of elastic asks before it opens or accepts a connection.
///
/// kUnavailable: the message says what fails, and names OpenSSL's configuration file.
Status check_openssl(bool encrypt);

}  // namespace elastic
