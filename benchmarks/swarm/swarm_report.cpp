#include "benchmarks/swarm/swarm_report.hpp"

#include "benchmarks/report/formatted.hpp"

namespace elastic::bench {

std::string table_of(const SwarmTimes& times) {
  return formatted("%d workers without a data plane, one server\n\n", times.workers) +
         formatted("  form          %8.3f s   until all are in one view\n", times.form_s) +
         formatted("  idle          %8.1f %%   of one core for the server\n",
                   times.idle_cpu_percent) +
         formatted(
             "  one death     %8.3f s   %.3f s of a core for the server, %.0f bytes to each of "
             "the others\n",
             times.death_s, times.death_server_s, times.bytes_per_member_death) +
         formatted("  %-4d deaths   %8.3f s   %zu rounds, %zu views\n", times.deaths,
                   times.deaths_s, times.deaths_rounds, times.deaths_views) +
         formatted("  server back   %8.3f s   %zu evicted\n", times.server_return_s,
                   times.evicted) +
         formatted("  %-4d joiners  %8.3f s\n", times.joiners, times.join_s);
}

nlohmann::ordered_json row_of(const SwarmTimes& times) {
  return {{"workers", times.workers},
          {"form_s", times.form_s},
          {"death_s", times.death_s},
          {"deaths", times.deaths},
          {"deaths_rounds", times.deaths_rounds},
          {"deaths_views", times.deaths_views},
          {"deaths_s", times.deaths_s},
          {"server_return_s", times.server_return_s},
          {"evicted", times.evicted},
          {"idle_cpu_percent", times.idle_cpu_percent},
          {"death_server_s", times.death_server_s},
          {"bytes_per_member_death", times.bytes_per_member_death},
          {"joiners", times.joiners},
          {"join_s", times.join_s}};
}

}  // namespace elastic::bench
