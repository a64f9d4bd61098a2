#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "base/status.hpp"
#include "rendezvous/etcd/http_post.hpp"

namespace elastic::etcd {

/// What an answer of etcd's JSON gateway says: its object, or the failure that it tells of. Pure.
///
/// kUnavailable: another member, or the same one later, may do it. kAborted: the token of this
/// client holds no more. kRefused: this client may not, until that is changed in etcd.
/// kInvalidArgument: the password is wrong. Both have a remedy. kProtocol: this is no answer of
/// etcd. kInternal: etcd does not take such a request, for example because it is too large.
Result<nlohmann::json> read_answer(const HttpAnswer& answer);

}  // namespace elastic::etcd
