/* SQLite: each thread has a database in memory, of rows with texts, an index, deletions and a query that sorts. */
#include <sqlite3.h>
#include <string.h>

#include "crew.h"

static void execute(sqlite3* base, const char* text) {
  need(sqlite3_exec(base, text, NULL, NULL, NULL) == SQLITE_OK, text);
}

static long long ask(sqlite3* base, const char* text) {
  sqlite3_stmt* query;
  need(sqlite3_prepare_v2(base, text, -1, &query, NULL) == SQLITE_OK, text);
  need(sqlite3_step(query) == SQLITE_ROW, text);
  long long answer = sqlite3_column_int64(query, 0);
  sqlite3_finalize(query);
  return answer;
}

static void insert_rows(sqlite3* base, int rows) {
  sqlite3_stmt* insert;
  need(sqlite3_prepare_v2(base, "insert into row values (?1, ?1 * 7919 % 10007, printf('%0*d', ?1 % 300, ?1))", -1,
                          &insert, NULL) == SQLITE_OK,
       "insert");
  for (int row = 1; row <= rows; ++row) {
    sqlite3_bind_int(insert, 1, row);
    need(sqlite3_step(insert) == SQLITE_DONE && sqlite3_reset(insert) == SQLITE_OK, "a row");
  }
  sqlite3_finalize(insert);
}

static void* work(void* unused) {
  (void)unused;
  sqlite3* base;
  need(sqlite3_open(":memory:", &base) == SQLITE_OK, "open");
  execute(base, "create table row (id integer primary key, part integer, text text); begin");
  insert_rows(base, g_amount);
  execute(base, "commit; create index by_part on row (part, text)");
  for (int at = 0; at < g_amount / 20; ++at) {
    char text[100];
    snprintf(text, sizeof text, "select count(*) from row where part = %d and text like '%%7%%'", at % 10007);
    need(ask(base, text) >= 0, "a count");
  }
  long long sum = ask(base, "select sum(id) from row"), all = (long long)g_amount * (g_amount + 1) / 2;
  need(sum == all, "the sum");
  need(ask(base, "select sum(n) from (select part % 100 as part, count(*) as n, group_concat(text) as t from row "
                 "group by 1 order by t)") == g_amount,
       "the groups");
  execute(base, "delete from row where id % 3 = 0; vacuum");
  need(ask(base, "select count(*) from row") == g_amount - g_amount / 3, "what is left");
  need(ask(base, "select count(*) from pragma_integrity_check where integrity_check = 'ok'") == 1, "integrity");
  need(sqlite3_close(base) == SQLITE_OK, "close");
  return NULL;
}

int main(int count, char** words) { return run_crew(count, words, 60000, work); }
