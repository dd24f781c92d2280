/* What the routing engine's logic, a Rust library, offers to the shim of OpenSM. The types are laid
 * out as in crates/opensm/src/discovered.rs, the calls are those of crates/opensm/src/ffi.rs. GUIDs
 * and LIDs are in host order. No call throws, exits or keeps a pointer. */
#ifndef CLEARLANE_H
#define CLEARLANE_H

#include <stddef.h>
#include <stdint.h>

struct clearlane_node {
	uint64_t guid;		/* node GUID, unique */
	uint8_t is_switch;	/* 1 for a switch, else 0 */
	uint8_t ports;		/* external ports, 1 to 254 */
};

struct clearlane_port {
	uint64_t node_guid;
	uint64_t guid;		/* port GUID */
	uint16_t lid;		/* base LID, 0 for none yet */
	uint8_t port;		/* 0 for a switch */
	uint8_t lmc;		/* 0 to 7 */
};

struct clearlane_cable {
	uint64_t a_guid, b_guid;	/* node GUIDs */
	uint8_t a_port, b_port;
	uint8_t lanes;		/* operational data VLs, 1 to 15 */
};

/* The engine; opaque. */
struct clearlane;

/* Takes a line for the log, without an end of line; is_fault is 0 or 1. */
typedef void (*clearlane_say) (void *log, int is_fault, const char *line);

enum clearlane_result {
	CLEARLANE_DONE = 0,
	CLEARLANE_FAILED = -1,	/* said why */
	CLEARLANE_UNKNOWN = -2,	/* no such node or port, or nothing is routed yet */
	CLEARLANE_TOO_SHORT = -3,	/* the array has no room for the largest LID */
	CLEARLANE_BAD_CALL = -4,	/* a NULL or a length that cannot be */
	CLEARLANE_FAULT = -5	/* a fault of clearlane; what was routed before is kept */
};

/* An engine for the text of event_plugin_options, which may be NULL. NULL if it has said what is
 * wrong with the text. */
struct clearlane *clearlane_new(const char *options, clearlane_say say, void *log);
void clearlane_delete(struct clearlane *engine);

/* Chooses tables for a fabric. has_lanes is 0 where OpenSM programs no SL2VL. If it fails, what was
 * routed before is kept. */
int clearlane_route(struct clearlane *engine,
		    const struct clearlane_node *nodes, size_t node_count,
		    const struct clearlane_port *ports, size_t port_count,
		    const struct clearlane_cable *cables, size_t cable_count,
		    int has_lanes, clearlane_say say, void *log);

/* Fills table[0..length] with a switch's output ports by LID, 255 where there is none. With a NULL
 * table it only says whether it would. */
int clearlane_table(const struct clearlane *engine, uint64_t switch_guid, uint8_t *table,
		    size_t length);

/* The SL of a path, 0 to 15; hint is what OpenSM would take. */
uint8_t clearlane_path_sl(const struct clearlane *engine, uint8_t hint, uint16_t slid,
			  uint16_t dlid);

/* VL by SL at a port, each below lanes, which is the port's operational data VLs. */
int clearlane_lanes(const struct clearlane *engine, uint64_t node_guid, uint8_t input,
		    uint8_t output, uint8_t lanes, uint8_t vl_of_sl[16]);

/* 1 if all lanes are to have the same weight, 0 if opensm.conf decides. */
int clearlane_equal_arbitration(const struct clearlane *engine);

#endif
