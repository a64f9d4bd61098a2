#pragma once

#include <map>
#include <string>

#include "base/status.hpp"

namespace elastic::launcher {

/// This user's folder for files about running jobs: XDG_RUNTIME_DIR/elastic-UID where that is set,
/// otherwise /tmp/elastic-UID. Made with mode 0700. Where another user has made a file of that
/// name, elastic-UID-1 and so on; every process of this user finds the same one. One of this user
/// that others can enter is refused, because the files have secrets in them.
Result<std::string> private_folder(const std::map<std::string, std::string>& environment);

/// `folder` as above, whatever its place; its parent must be there.
Status make_private_folder(const std::string& folder);

}  // namespace elastic::launcher
