#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace elastic::coordinator {

/// The beginning of the names under which the coordinator knows the calls of a group: tells them
/// from those of groups by other rules, and of other workers. `mark` ends in "~" and eight hex
/// digits (runtime::group_mark).
std::string group_prefix(std::string_view mark, std::uint64_t hash_of_workers);

/// The name of the call that the program calls `name`.
std::string name_in_group(std::string_view prefix, std::string_view name);
/// That of call `number` without a name, counted from 1.
std::string name_in_group(std::string_view prefix, std::uint64_t number);

/// The name of message `number`, counted from 1, between two workers. `mark`: of the group whose
/// members they are; empty: of the job.
std::string message_name(std::uint64_t from, std::uint64_t to, std::string_view mark, int tag,
                         std::uint64_t number);

/// The name of a call for users: "'grad'", "'grad' of the group 'per host'", "#3 of the group 'per
/// host'", or "#1 with tag 7" of messages. The rule of a group is cut off where its mark is.
std::string user_name(std::string_view name);

/// The name of a row of the timeline: "grad of the group 'per host'", all calls without a name of
/// "group 'per host'", all messages of two workers with one tag; another name as it is.
std::string row_name(std::string_view name);

}  // namespace elastic::coordinator
