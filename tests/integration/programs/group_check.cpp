// A worker that makes the collectives of groups, and compares each result with what it computes by
// itself. Writes <log>/<rank> when all have been right.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <elastic/elastic.hpp>
#include <elastic/group.hpp>

#include "integration/programs/check_program.hpp"
#include "integration/programs/group_reductions.hpp"
#include "integration/programs/sparse_check.hpp"

namespace {

using elastic::Context;
using elastic::ErrorCode;
using elastic::Group;
using elastic::GroupRule;
using elastic::Root;
using elastic::testing::must_fail;
using elastic::testing::require;

using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kCounts[] = {0, 1, 7, 1000, 40'000, 300'001};

class Checks {
 public:
  Checks() : job_(elastic::context()), rank_(job_.rank()), size_(job_.size()) {}

  void run() {
    membership();
    for (Group* const group : groups()) {
      if (group->rank() < 0) {
        outside(*group);
      } else {
        check(*group);
      }
    }
    in_any_order();
    queued();
    mismatches();
    roots();
    nested();
    nested_with_names_alike();
    many_workers();
    asked_in_rules();
    ranks_in_place_of_ids();
    messages();
    const Numbers all(1, 1);
    require(job_.allreduce(std::int64_t{1}) == size_, "the job's own sums");
  }

 private:
  std::vector<Group*> groups() {
    return {&job_.group(GroupRule::per_host()),
            &job_.group(GroupRule::every(2)),
            &job_.group(GroupRule::every(2, 1)),
            &job_.group(GroupRule::ranks({0, size_ - 1 > 0 ? size_ - 1 : 1})),
            &job_.group(GroupRule::ranks({size_ / 2})),
            &job_.group(GroupRule::by("rank mod 3", [](auto members, elastic::WorkerId self) {
              const auto own = std::ranges::find(members, self, &elastic::GroupMember::id);
              std::vector<elastic::WorkerId> chosen;
              for (auto each = members.begin(); each != members.end(); ++each) {
                if ((each - own) % 3 == 0) chosen.push_back(each->id);
              }
              return chosen;
            }))};
  }

  void membership() {
    Group& even = job_.group(GroupRule::every(2));
    require(even.size() == (size_ + 1) / 2, "every second rank");
    require(even.rank() == (rank_ % 2 == 0 ? rank_ / 2 : -1), "the rank in it");
    require(&even == &job_.group(GroupRule::every(2)), "the same rule gives the same group");
    require(even.members().workers()[0] == job_.members().workers()[0], "its first member");
    require(job_.group(GroupRule::per_host()).size() == size_, "all are on one host");
    require(job_.group(GroupRule::across_hosts()).size() == 1, "no other host");
  }

  /// The ranks in the job of a group's members.
  Numbers ranks_of(const Group& group) {
    const auto all = job_.members().workers();
    const elastic::Contributors members = group.members();
    Numbers ranks;
    for (const elastic::WorkerId id : members.workers()) {
      ranks.push_back(std::ranges::find(all, id) - all.begin());
    }
    return ranks;
  }

  void check(Group& group) {
    const Numbers ranks = ranks_of(group);
    const auto members = static_cast<std::int64_t>(ranks.size());
    const std::int64_t total = std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0});
    for (const std::size_t count : kCounts) {
      Numbers data(count, rank_);
      const auto contributors = group.allreduce(data);
      require(contributors.size() == ranks.size(), "contributors of " + group.name());
      require(data == Numbers(count, total), "allreduce in " + group.name());

      std::vector<float> floats(count, static_cast<float>(rank_));
      group.allreduce(floats, elastic::ReduceOp::kMax);
      require(floats == std::vector<float>(count, static_cast<float>(ranks.back())),
              "maximum in " + group.name());

      Numbers from(count, rank_);
      group.broadcast(from, group.size() - 1);
      require(from == Numbers(count, ranks.back()), "broadcast in " + group.name());

      const auto gathered =
          group.allgather(Numbers(count + static_cast<std::size_t>(group.rank()), rank_));
      Numbers right;
      for (std::int64_t i = 0; i < members; ++i) {
        right.insert(right.end(), count + static_cast<std::size_t>(i),
                     ranks[static_cast<std::size_t>(i)]);
      }
      require(gathered.values == right, "allgather in " + group.name());

      Numbers blocks;
      for (std::int64_t i = 0; i < members; ++i)
        blocks.insert(blocks.end(), count, rank_ * 100 + i);
      const auto exchanged = group.alltoall(blocks);
      right.clear();
      for (const std::int64_t each : ranks)
        right.insert(right.end(), count, each * 100 + group.rank());
      require(exchanged.values == right, "alltoall in " + group.name());

      const auto part = group.reduce_scatter(Numbers(count, rank_));
      require(part.values == Numbers(part.values.size(), total),
              "reduce_scatter in " + group.name());

      const auto at_root = group.gather(Numbers(count, rank_), 0);
      require(at_root.values.size() == (group.rank() == 0 ? count * ranks.size() : 0),
              "gather in " + group.name());
      const auto scattered = group.scatter(blocks, 0);
      require(scattered.values == Numbers(count, ranks.front() * 100 + group.rank()),
              "scatter in " + group.name());
      Numbers reduced(count, rank_);
      group.reduce(reduced, group.size() - 1);
      require(reduced == Numbers(count, group.rank() + 1 == group.size() ? total : rank_),
              "reduce in " + group.name());
      Numbers before(count, rank_);
      group.exscan(before);
      require(before == Numbers(count, std::accumulate(ranks.begin(), ranks.begin() + group.rank(),
                                                       std::int64_t{0})),
              "exscan in " + group.name());
    }
    group.barrier();
    require(group.allreduce(std::int64_t{1}) == members, "a number in " + group.name());
    std::vector<double> one(10, rank_);
    std::vector<float> other(3, 1);
    const elastic::TensorView both[] = {elastic::view(std::span(one)),
                                        elastic::view(std::span(other))};
    group.grouped_allreduce(both);
    require(one == std::vector<double>(10, static_cast<double>(total)) &&
                other == std::vector<float>(3, static_cast<float>(members)),
            "grouped_allreduce in " + group.name());
    std::vector<double> scaled(5, rank_);
    group.allreduce(scaled, elastic::ReduceOp::kSum, elastic::Scale(2, 0.5));
    require(scaled == std::vector<double>(5, static_cast<double>(total)), "scaled");
    elastic::testing::check_gathered_reductions(group, ranks, rank_);
    elastic::testing::ResultHash hash;
    elastic::testing::SparseCheck(group, group.rank(), group.size()).run(hash);
  }

  void outside(Group& group) {
    must_fail("outside", ErrorCode::kInvalidArgument,
              {"rank " + std::to_string(rank_), "is not in the group '" + group.name() + "'"},
              [&] { (void)group.allreduce(std::int64_t{1}); });
    must_fail("outside, named", ErrorCode::kInvalidArgument, {group.name()}, [&] {
      Numbers data(3);
      (void)group.allreduce_async("name", data);
    });
  }

  /// Groups that overlap, in another order on each rank.
  void in_any_order() {
    std::vector<Group*> mine;
    for (Group* const group : groups()) {
      if (group->rank() >= 0) mine.push_back(group);
    }
    std::rotate(mine.begin(), mine.begin() + rank_ % static_cast<std::ptrdiff_t>(mine.size()),
                mine.end());
    std::vector<Numbers> sums(mine.size(), Numbers(500, rank_));
    std::vector<Numbers> own(mine.size());
    std::vector<elastic::Work> works;
    for (std::size_t i = 0; i < mine.size(); ++i) {
      works.push_back(mine[i]->allreduce_async("sum", sums[i]));
    }
    std::vector<float> world(100, 1);
    works.push_back(job_.allreduce_async("sum", world));
    for (const elastic::Work& work : works) work.wait();
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const Numbers ranks = ranks_of(*mine[i]);
      require(sums[i] == Numbers(500, std::accumulate(ranks.begin(), ranks.end(), std::int64_t{0})),
              "in any order: " + mine[i]->name());
    }
    require(world == std::vector<float>(100, static_cast<float>(size_)), "the job's");

    std::vector<std::thread> threads;
    for (Group* const group : mine) {
      threads.emplace_back([group] {
        for (int i = 0; i < 5; ++i) {
          require(group->allreduce(std::int64_t{1}) == group->size(), "by a thread for each");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  /// Calls without a name on two groups, begun in opposite orders.
  void queued() {
    Group& all = job_.group(GroupRule::per_host());
    Group& same = job_.group(GroupRule::by("all", [](auto members, auto) {
      std::vector<elastic::WorkerId> ids;
      for (const auto& each : members) ids.push_back(each.id);
      return ids;
    }));
    Numbers first(1000, 1);
    Numbers second(2000, 2);
    Group& before = rank_ % 2 == 0 ? all : same;
    Group& after = rank_ % 2 == 0 ? same : all;
    const auto start = [&](Group& group) {
      const std::span<std::int64_t> data(&group == &all ? first : second);
      return group.allreduce_async(elastic::view(data), elastic::view(data));
    };
    const elastic::Work works[] = {start(before), start(after)};
    elastic::wait_all(works);
    require(first == Numbers(1000, size_) && second == Numbers(2000, 2 * size_), "queued");
  }

  void mismatches() {
    Group& all = job_.group(GroupRule::per_host());
    if (size_ < 2) return;
    must_fail("different calls", ErrorCode::kMismatch, {"in the group of ranks"}, [&] {
      Numbers data(static_cast<std::size_t>(10 + rank_));
      all.allreduce(data);
    });
    must_fail("different named calls", ErrorCode::kMismatch, {"submitted allreduce of"}, [&] {
      Numbers data(static_cast<std::size_t>(10 + rank_));
      all.allreduce_async("grad", data).wait();
    });
    must_fail("a root that is not there", ErrorCode::kMismatch, {"root"},
              [&] { all.gather(Numbers(3), size_); });
    require(all.allreduce(std::int64_t{1}) == size_, "the group goes on");
    must_fail("no name", ErrorCode::kInvalidArgument, {"name"}, [&] {
      Numbers data(3);
      (void)all.allreduce_async("", data);
    });
    must_fail("no step", ErrorCode::kInvalidArgument, {"every", "0"},
              [] { (void)GroupRule::every(0); });
    must_fail("no rank", ErrorCode::kInvalidArgument, {"-1"}, [] { (void)GroupRule::ranks({-1}); });
    must_fail("twice", ErrorCode::kInvalidArgument, {"rank 1", "twice"}, [] {
      (void)GroupRule::ranks({1, 1});
    });
  }

  void roots() {
    Group& even = job_.group(GroupRule::every(2));
    if (even.rank() < 0 || size_ < 2) return;
    Numbers data(5, rank_);
    must_fail("a root outside", ErrorCode::kRootLost, {"group"},
              [&] { even.broadcast_from(data, job_.members().workers()[1]); });
    even.broadcast_from(data, job_.members().workers()[0]);
    require(data == Numbers(5, 0), "broadcast from a worker");
  }

  void nested() {
    Group& even = job_.group(GroupRule::every(2));
    Group& fourth = even.group(GroupRule::every(2));
    require(fourth.size() == (size_ + 3) / 4, "every fourth");
    require(fourth.rank() == (rank_ % 4 == 0 ? rank_ / 4 : -1), "the rank in it");
    if (fourth.rank() < 0) return;
    require(fourth.allreduce(std::int64_t{rank_}) % 4 == 0, "nested");
  }

  /// Names that read alike in a row are not those of one group.
  void nested_with_names_alike() {
    const auto chosen = [](std::size_t which) {
      return [which](auto members, elastic::WorkerId) {
        std::vector<elastic::WorkerId> one;
        if (which < members.size()) one.push_back(members[which].id);
        return one;
      };
    };
    const auto all = [](auto members, elastic::WorkerId) {
      std::vector<elastic::WorkerId> every;
      for (const auto& member : members) every.push_back(member.id);
      return every;
    };
    Group& nested = job_.group(GroupRule::by("a", all)).group(GroupRule::by("b", chosen(0)));
    Group& other = job_.group(GroupRule::by("a, by b", chosen(1)));
    require(&nested != &other, "groups of different rules are different");
    require((nested.rank() == 0) == (rank_ == 0), "the first rank alone");
    if (nested.rank() == 0) nested.barrier();
    if (other.rank() == 0) other.barrier();
  }

  /// A rule of many workers, whose name is long.
  void many_workers() {
    std::vector<elastic::WorkerId> ids;
    for (elastic::WorkerId id = 1; id <= 300; ++id) ids.push_back(id);
    const elastic::Contributors members = job_.members();
    ids.insert(ids.end(), members.workers().begin(), members.workers().end());
    Group& group = job_.group(GroupRule::workers(ids));
    require(group.allreduce(std::int64_t{1}) == size_, "a call of a group with a long name");
    Numbers sum(10, 1);
    group.allreduce_async("a name", std::span(sum)).wait();
    require(sum == Numbers(10, size_), "a named call of a group with a long name");
  }

  void ranks_in_place_of_ids() {
    Group& group = job_.group(GroupRule::by("of ranks", [](auto, elastic::WorkerId) {
      return std::vector<elastic::WorkerId>{0, 1};
    }));
    must_fail("a rule that returns ranks", ErrorCode::kInvalidArgument,
              {"the rule 'of ranks' of a group returned 0 and others", "the id of no member"},
              [&] { group.size(); });
  }

  /// While a rule is applied, its group is locked. A later rule with the same name gets the group
  /// of the first, whose function is called again after an error.
  void asked_in_rules() {
    Group* asked = nullptr;
    const auto ask = std::make_shared<std::function<void()>>();
    Group& group = job_.group(GroupRule::by("asks", [ask](auto members, elastic::WorkerId) {
      (*ask)();
      return std::vector<elastic::WorkerId>{members.front().id, members.back().id};
    }));
    Group& other = job_.group(GroupRule::ranks({0}));
    const auto refused = [&](const std::string& call, const std::function<void()>& question) {
      *ask = question;
      must_fail(call, ErrorCode::kInvalidArgument,
                {call + " was called in the function of a group's rule"}, [&] { group.size(); });
    };
    const GroupRule same = GroupRule::by(
        "asks", [](auto, elastic::WorkerId) { return std::vector<elastic::WorkerId>(); });
    refused("Context::group", [&] { asked = &job_.group(same); });
    refused("Group::group", [&] { asked = &other.group(same); });
    refused("Group::rank", [&] { (void)group.rank(); });
    refused("Group::size", [&] { (void)group.size(); });
    refused("Group::members", [&] { (void)other.members(); });
    refused("a collective of a group", [&] { group.barrier(); });
    refused("allreduce", [&] { (void)job_.allreduce(std::int64_t{1}); });
    require(asked == nullptr, "no group was given");
    *ask = [] {};
    require(group.size() == (size_ > 1 ? 2 : 1), "the group after its errors");
    *ask = [&] { elastic::testing::fail("a rule was applied to the same members again"); };
    require(group.rank() < 2, "a rank");
    *ask = [] {};
  }

  void messages() {
    if (size_ == 1) return;
    const int next = (rank_ + 1) % size_;
    const int before = (rank_ + size_ - 1) % size_;
    for (const std::size_t count : kCounts) {
      Numbers out(count + 3, -1);
      const auto coming = job_.recv_async(elastic::view(std::span(out)), before, 7);
      require(job_.send(Numbers(count, rank_), next, 7).size() == 2, "the workers of a message");
      require(coming.wait().count == count, "elements of a message");
      Numbers right(count, before);
      right.insert(right.end(), 3, -1);
      require(out == right, "a message");
    }
    if (rank_ == 0) {  // tags overtake each other, messages with one tag do not
      const Numbers data{1, 2, 3};
      const auto whole = elastic::view(std::span<const std::int64_t>(data));
      std::vector<elastic::Work> sent;
      for (const int tag : {0, 1, 0}) {
        elastic::ConstTensorView part = whole;
        part.data = data.data() + sent.size();
        part.count = 1;
        sent.push_back(job_.send_async(part, 1, tag));
      }
      elastic::wait_all(sent);
    } else if (rank_ == 1) {
      Numbers out(1);
      for (const auto& [tag, value] : {std::pair{1, 2}, {0, 1}, {0, 3}}) {
        job_.recv(out, 0, tag);
        require(out[0] == value, "order of messages");
      }
    }
    Group& ends = job_.group(GroupRule::ranks({0, size_ - 1}));
    Numbers one(1, rank_);
    if (ends.rank() == 0 && ends.size() == 2) ends.send(one, 1);
    if (ends.rank() == 1) {
      ends.recv(one, 0);
      require(one[0] == 0, "a message in a group");
    }
    if (size_ > 1 && rank_ < 2) crossing_messages();
    must_fail("to itself", ErrorCode::kInvalidArgument, {"itself"}, [&] { job_.send(one, rank_); });
    must_fail("to no rank", ErrorCode::kInvalidArgument, {"is no rank"},
              [&] { job_.recv(one, size_); });
    must_fail("to a stranger", ErrorCode::kRootLost, {"no member"},
              [&] { job_.send(one, Root::worker(12345)); });
    if (rank_ == 0) {
      job_.send(Numbers(5), 1);
      must_fail("another type", ErrorCode::kMismatch, {"f32", "i64"},
                [&] { job_.send(std::vector<float>(2), 1); });
    } else if (rank_ == 1) {
      must_fail("no room", ErrorCode::kInvalidArgument, {"5 elements", "room"},
                [&] { job_.recv(one, 0); });
      must_fail("another type", ErrorCode::kMismatch, {"f32", "i64"}, [&] { job_.recv(one, 0); });
    }
  }

  /// Messages of the job and of groups have no order among each other.
  void crossing_messages() {
    Group& first = job_.group(GroupRule::ranks({0, 1}));
    Group& second = first.group(GroupRule::every(1));
    Numbers values[] = {{1}, {100}, {10'000}};
    std::vector<elastic::Work> works;
    if (rank_ == 0) {
      works.push_back(job_.send_async(elastic::view(std::span(values[0])), 1));
      works.push_back(first.send_async(elastic::view(std::span(values[1])), 1));
      works.push_back(second.send_async(elastic::view(std::span(values[2])), 1));
      return elastic::wait_all(works);
    }
    Numbers got[3] = {{0}, {0}, {0}};
    const auto third = second.recv_async(elastic::view(std::span(got[2])), 0);
    const auto of_first = first.recv_async(elastic::view(std::span(got[1])), 0);
    const auto of_job = job_.recv_async(elastic::view(std::span(got[0])), 0);
    (void)third.wait();
    (void)of_first.wait();
    (void)of_job.wait();
    for (std::size_t i = 0; i < 3; ++i) require(got[i] == values[i], "the message of this group");
  }

  Context& job_;
  const int rank_;
  const int size_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) elastic::testing::fail("usage: group_check LOG_FOLDER");
  return elastic::testing::as_a_worker([&] {
    const int rank = elastic::rank();
    Checks().run();
    (void)rank;
    elastic::testing::write_result(argv[1], {});
  });
}
