/* Calls the interface as no shim should, and as the shim does, under the sanitizers: bad pointers
 * and lengths, lists of nonsense, a ring that is routed and asked about. Ends with 0 if every
 * answer is what clearlane.h says. argv[1] is a folder whose files are spoilt. */
#include "clearlane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWITCHES 5
#define LIDS (2 * SWITCHES + 1)
#define ROUNDS 3000

#define HOLDS(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "line %d: not %s\n", __LINE__, #what); \
			exit(1); \
		} \
	} while (0)

struct lists {
	struct clearlane_node nodes[2 * SWITCHES];
	struct clearlane_port ports[2 * SWITCHES];
	struct clearlane_cable cables[2 * SWITCHES];
};

static unsigned lines, faults;

static void count(void *log, int is_fault, const char *line)
{
	HOLDS(log == &lines);
	HOLDS(strlen(line) > 0 && !strchr(line, '\n'));
	lines++;
	faults += is_fault != 0;
}

/* Switches in a ring with a host each: ports 1 and 2 go round, port 3 to the host. */
static void ring(struct lists *lists)
{
	memset(lists, 0, sizeof(*lists));
	for (uint64_t at = 0; at < SWITCHES; at++) {
		uint64_t sw = 0x100 + at, host = 0x200 + 16 * at;

		lists->nodes[at] = (struct clearlane_node){ sw, 1, 3 };
		lists->nodes[SWITCHES + at] = (struct clearlane_node){ host, 0, 1 };
		lists->ports[at] = (struct clearlane_port){ sw, sw, 1 + at, 0, 0 };
		lists->ports[SWITCHES + at] =
		    (struct clearlane_port){ host, host + 1, 1 + SWITCHES + at, 1, 0 };
		lists->cables[at] =
		    (struct clearlane_cable){ sw, 0x100 + (at + 1) % SWITCHES, 1, 2, 8 };
		lists->cables[SWITCHES + at] = (struct clearlane_cable){ sw, host, 3, 1, 8 };
	}
}

static int route(struct clearlane *engine, const struct lists *lists)
{
	return clearlane_route(engine, lists->nodes, 2 * SWITCHES, lists->ports, 2 * SWITCHES,
			       lists->cables, 2 * SWITCHES, 1, count, &lines);
}

static struct clearlane *engine_of(const char *options)
{
	struct clearlane *engine = clearlane_new(options, count, &lines);

	HOLDS(engine);
	return engine;
}

static void bad_calls(struct clearlane *engine)
{
	struct lists lists;
	uint8_t table[LIDS], lanes[16];

	ring(&lists);
	HOLDS(!clearlane_new("no such option", count, &lines) && faults == 1);
	HOLDS(!clearlane_new("\xff\xfe=\x80", NULL, NULL));
	clearlane_delete(NULL);
	HOLDS(route(NULL, &lists) == CLEARLANE_BAD_CALL);
	HOLDS(clearlane_route(engine, NULL, 3, NULL, 0, NULL, 0, 1, count, &lines) ==
	      CLEARLANE_BAD_CALL);
	HOLDS(clearlane_route(engine, lists.nodes, SIZE_MAX, NULL, 0, NULL, 0, 1, NULL, NULL) ==
	      CLEARLANE_BAD_CALL);
	HOLDS(clearlane_route(engine, (void *)((char *)lists.nodes + 1), 1, NULL, 0, NULL, 0, 1,
			      NULL, NULL) == CLEARLANE_BAD_CALL);
	/* Nothing is routed yet. */
	HOLDS(clearlane_table(engine, 0x100, table, sizeof(table)) == CLEARLANE_UNKNOWN);
	HOLDS(clearlane_table(NULL, 0x100, table, sizeof(table)) == CLEARLANE_BAD_CALL);
	HOLDS(clearlane_lanes(engine, 0x100, 1, 2, 8, lanes) == CLEARLANE_UNKNOWN);
	HOLDS(clearlane_lanes(NULL, 0x100, 1, 2, 8, lanes) == CLEARLANE_BAD_CALL);
	HOLDS(clearlane_path_sl(engine, 7, 1, 2) == 7 && clearlane_path_sl(NULL, 200, 1, 2) == 0);
	HOLDS(clearlane_equal_arbitration(NULL) == 0 && clearlane_equal_arbitration(engine) == 1);
}

static void good_calls(struct clearlane *engine, uint8_t lanes_max)
{
	struct lists lists;
	uint8_t *table = malloc(LIDS), lanes[16];

	ring(&lists);
	HOLDS(route(engine, &lists) == CLEARLANE_DONE);
	HOLDS(clearlane_table(engine, 0x100, NULL, LIDS) == CLEARLANE_DONE);
	memset(table, 77, LIDS);
	HOLDS(clearlane_table(engine, 0x100, table, LIDS - 1) == CLEARLANE_TOO_SHORT);
	HOLDS(clearlane_table(engine, 0x999, table, LIDS) == CLEARLANE_UNKNOWN && table[1] == 77);
	HOLDS(clearlane_table(engine, 0x100, table, LIDS) == CLEARLANE_DONE);
	HOLDS(table[0] == 255 && table[1] == 0 && table[1 + SWITCHES] == 3);
	free(table);
	for (uint8_t input = 0; input <= 3; input++)
		for (uint8_t output = 0; output <= 3; output++)
			for (uint8_t few = 1; few <= lanes_max; few++) {
				HOLDS(!clearlane_lanes(engine, 0x100, input, output, few, lanes));
				for (int sl = 0; sl < 16; sl++)
					HOLDS(lanes[sl] < few);
			}
	HOLDS(clearlane_lanes(engine, 0x200, 0, 0, 8, lanes) == CLEARLANE_DONE);
	HOLDS(clearlane_lanes(engine, 0x100, 1, 4, 8, lanes) == CLEARLANE_UNKNOWN);
	HOLDS(clearlane_lanes(engine, 0x100, 1, 2, 0, lanes) == CLEARLANE_BAD_CALL);
	HOLDS(clearlane_lanes(engine, 0x100, 1, 2, 8, NULL) == CLEARLANE_BAD_CALL);
	for (unsigned slid = 0; slid < 70000; slid += 7)
		HOLDS(clearlane_path_sl(engine, 3, slid, slid / 2) < 16);
}

static uint64_t drawn(void)
{
	static uint64_t state = 88172645463325252u;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* The ring with a few bytes of its lists made others: refused, or routed and answered. */
static void nonsense(struct clearlane *engine)
{
	uint8_t *table = malloc(65536);

	for (int at = 0; at < ROUNDS; at++) {
		struct lists lists;
		unsigned char *bytes = (unsigned char *)&lists;

		ring(&lists);
		for (uint64_t left = 1 + drawn() % 8; left; left--)
			bytes[drawn() % sizeof(lists)] = drawn() % 3 ? drawn() % 8 : drawn();
		int done = route(engine, &lists);

		HOLDS(done == CLEARLANE_DONE || done == CLEARLANE_FAILED);
		done = clearlane_table(engine, 0x100 + drawn() % SWITCHES, table, 65536);
		HOLDS(done == CLEARLANE_DONE || done == CLEARLANE_UNKNOWN);
		HOLDS(clearlane_path_sl(engine, drawn(), drawn() % 16, drawn() % 16) < 16);
	}
	free(table);
}

int main(int count_of_words, char **words)
{
	char options[4096];
	struct clearlane *engine;

	HOLDS(count_of_words == 2);
	engine = engine_of("mode=vftree lanes=4");
	bad_calls(engine);
	good_calls(engine, 15);
	nonsense(engine);
	good_calls(engine, 15);
	clearlane_delete(engine);
	snprintf(options, sizeof(options), "folder=%s safe=layered", words[1]);
	engine = engine_of(options);
	faults = 0;
	good_calls(engine, 8);
	HOLDS(faults > 0);
	nonsense(engine);
	clearlane_delete(engine);
	printf("%u lines\n", lines);
	return 0;
}
