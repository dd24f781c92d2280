/* The routing engine `clearlane` for a stock OpenSM: an event plug-in that registers it. What
 * OpenSM has discovered goes to the library behind clearlane.h, and what that decides goes into
 * OpenSM's tables. OpenSM calls all of this with its lock held: to write where tables are built, to
 * read where an SL is asked for. */
#include "clearlane.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <opensm/osm_config.h>
#include <opensm/osm_version.h>
#include <opensm/osm_opensm.h>
#include <opensm/osm_log.h>
#include <opensm/osm_event_plugin.h>

struct plugin {
	osm_opensm_t *osm;
	struct clearlane *engine;
};

/* What was discovered; lists to be freed. */
struct found {
	struct clearlane_node *nodes;
	struct clearlane_port *ports;
	struct clearlane_cable *cables;
	size_t node_count, port_count, cable_count;
};

/* Units of 64 bytes a lane may send at a turn where all weigh the same. */
#define WEIGHT 64
/* OpenSM puts a line into a buffer of 4,096 bytes and does not look at its length. */
#define LINE_BYTES_MAX 3000

/* Data VLs by the code of PortInfo's OperationalVLs (IBA vol. 1, 14.2.5.6). */
static uint8_t lanes_of(uint8_t code)
{
	static const uint8_t lanes[] = { 1, 1, 2, 4, 8, 15 };
	return lanes[code < sizeof(lanes) ? code : sizeof(lanes) - 1];
}

static void say(void *log, int is_fault, const char *line)
{
	osm_log((osm_log_t *) log, is_fault ? OSM_LOG_ERROR : OSM_LOG_INFO,
		"clearlane: %.*s\n", LINE_BYTES_MAX, line);
}

static void add_node(struct found *found, osm_node_t *node)
{
	struct clearlane_node *to = &found->nodes[found->node_count++];

	to->guid = cl_ntoh64(osm_node_get_node_guid(node));
	to->is_switch = osm_node_get_type(node) == IB_NODE_TYPE_SWITCH;
	to->ports = osm_node_get_num_physp(node) - 1;
}

static void add_port(struct found *found, osm_port_t *port)
{
	struct clearlane_port *to = &found->ports[found->port_count++];
	uint16_t first, last;

	osm_port_get_lid_range_ho(port, &first, &last);
	to->node_guid = cl_ntoh64(osm_node_get_node_guid(port->p_node));
	to->guid = cl_ntoh64(osm_port_get_guid(port));
	to->lid = first;
	to->port = osm_physp_get_port_num(port->p_physp);
	for (to->lmc = 0; first + (1 << to->lmc) <= last; to->lmc++) ;
}

/* The cable in a port, if it is up, sound, and this is the first of its ends. */
static void add_cable(struct found *found, osm_opensm_t *osm, osm_physp_t *a)
{
	osm_physp_t *b = osm_physp_get_remote(a);
	struct clearlane_cable *to = &found->cables[found->cable_count];
	uint8_t code;

	if (!b || b->p_remote_physp != a || !osm_link_is_healthy(a))
		return;
	to->a_guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(a)));
	to->b_guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(b)));
	to->a_port = osm_physp_get_port_num(a);
	to->b_port = osm_physp_get_port_num(b);
	if (to->a_guid > to->b_guid || (to->a_guid == to->b_guid && to->a_port >= to->b_port))
		return;
	code = ib_port_info_get_op_vls(&a->port_info);
	to->lanes = lanes_of(osm_physp_calc_link_op_vls(&osm->log, &osm->subn, a, code));
	found->cable_count++;
}

static void forget(struct found *found)
{
	free(found->nodes);
	free(found->ports);
	free(found->cables);
}

/* Lists of all that was discovered; 0 if there is memory for them. */
static int gather(struct found *found, osm_opensm_t *osm)
{
	cl_qmap_t *nodes = &osm->subn.node_guid_tbl, *ports = &osm->subn.port_guid_tbl;
	cl_map_item_t *item;
	size_t cables = 0;
	unsigned port;

	memset(found, 0, sizeof(*found));
	for (item = cl_qmap_head(nodes); item != cl_qmap_end(nodes); item = cl_qmap_next(item))
		cables += osm_node_get_num_physp((osm_node_t *) item);
	found->nodes = calloc(cl_qmap_count(nodes) + 1, sizeof(*found->nodes));
	found->ports = calloc(cl_qmap_count(ports) + 1, sizeof(*found->ports));
	found->cables = calloc(cables + 1, sizeof(*found->cables));
	if (!found->nodes || !found->ports || !found->cables)
		return -1;
	for (item = cl_qmap_head(nodes); item != cl_qmap_end(nodes); item = cl_qmap_next(item)) {
		osm_node_t *node = (osm_node_t *) item;

		add_node(found, node);
		for (port = 1; port < osm_node_get_num_physp(node); port++) {
			osm_physp_t *physp = osm_node_get_physp_ptr(node, port);
			if (physp)
				add_cable(found, osm, physp);
		}
	}
	for (item = cl_qmap_head(ports); item != cl_qmap_end(ports); item = cl_qmap_next(item))
		add_port(found, (osm_port_t *) item);
	return 0;
}

/* Whether there are tables for all switches, or fills them. */
static int each_switch(struct plugin *plugin, int fill)
{
	cl_qmap_t *switches = &plugin->osm->subn.sw_guid_tbl;
	cl_map_item_t *item;

	for (item = cl_qmap_head(switches); item != cl_qmap_end(switches);
	     item = cl_qmap_next(item)) {
		osm_switch_t *sw = (osm_switch_t *) item;
		uint64_t guid = cl_ntoh64(osm_node_get_node_guid(sw->p_node));
		int done = clearlane_table(plugin->engine, guid, fill ? sw->new_lft : NULL,
					   sw->lft_size);

		if (done != CLEARLANE_DONE || !sw->new_lft) {
			osm_log(&plugin->osm->log, OSM_LOG_ERROR,
				"clearlane: no table for switch 0x%016" PRIx64 " (%d); "
				"OpenSM keeps what the switches have\n", guid, done);
			return -1;
		}
	}
	return 0;
}

/* OpenSM's ucast_build_fwd_tables: below 0 it takes nothing from here. */
static int build(void *context)
{
	struct plugin *plugin = context;
	osm_opensm_t *osm = plugin->osm;
	struct found found;
	int done = CLEARLANE_FAILED;

	if (!osm->no_fallback_routing_engine)
		say(&osm->log, 1, "without no_fallback in routing_engine OpenSM may fall back to "
		    "MinHop, which can deadlock; write routing_engine clearlane,no_fallback");
	if (gather(&found, osm))
		say(&osm->log, 1, "no memory for the list of nodes; nothing is routed");
	else
		done = clearlane_route(plugin->engine, found.nodes, found.node_count, found.ports,
				       found.port_count, found.cables, found.cable_count,
				       osm->subn.opt.qos, say, &osm->log);
	forget(&found);
	/* All of them are there before the first is written. */
	if (done != CLEARLANE_DONE || each_switch(plugin, 0))
		return -1;
	return each_switch(plugin, 1);
}

static uint8_t path_sl(void *context, uint8_t hint, const ib_net16_t slid, const ib_net16_t dlid)
{
	struct plugin *plugin = context;

	return clearlane_path_sl(plugin->engine, hint, cl_ntoh16(slid), cl_ntoh16(dlid));
}

static uint8_t port_lanes(struct plugin *plugin, osm_physp_t *port)
{
	osm_opensm_t *osm = plugin->osm;
	uint8_t code = ib_port_info_get_op_vls(&port->port_info);

	return lanes_of(osm_physp_calc_link_op_vls(&osm->log, &osm->subn, port, code));
}

static void update_sl2vl(void *context, osm_physp_t *port, uint8_t input, uint8_t output,
			 ib_slvl_table_t *table)
{
	struct plugin *plugin = context;
	uint64_t guid = cl_ntoh64(osm_node_get_node_guid(osm_physp_get_node_ptr(port)));
	uint8_t lanes[16];
	unsigned sl;

	if (clearlane_lanes(plugin->engine, guid, input, output, port_lanes(plugin, port), lanes))
		return;
	for (sl = 0; sl < 16; sl++)
		ib_slvl_table_set(table, sl, lanes[sl]);
}

/* All lanes of the port in the first block of the low table with one weight, nothing in the others.
 * Blocks 0 and 1 are the low table, 2 and 3 the high one. */
static void update_vlarb(void *context, osm_physp_t *port, uint8_t number, ib_vl_arb_table_t *block,
			 unsigned length, unsigned index)
{
	struct plugin *plugin = context;
	uint8_t lanes = port_lanes(plugin, port);
	unsigned entry;

	(void)number;
	/* A lane without an entry would never send. */
	if (!clearlane_equal_arbitration(plugin->engine) || port->port_info.vl_arb_low_cap < lanes)
		return;
	for (entry = 0; entry < length; entry++) {
		int used = index == 0 && entry < lanes;

		block->vl_entry[entry].vl = used ? entry : 0;
		block->vl_entry[entry].weight = used ? WEIGHT : 0;
	}
}

static int setup(struct osm_routing_engine *engine, struct osm_opensm *osm)
{
	(void)osm;
	/* OpenSM's own hop counts serve multicast, so build_lid_matrices stays NULL. */
	engine->ucast_build_fwd_tables = build;
	engine->path_sl = path_sl;
	engine->update_sl2vl = update_sl2vl;
	engine->update_vlarb = update_vlarb;
	return 0;
}

static void destroy(void *context)
{
	struct plugin *plugin = context;

	clearlane_delete(plugin->engine);
	free(plugin);
}

static void *construct(struct osm_opensm *osm)
{
	static const char name[] = "clearlane";
	external_routing_engine_module_t module = { name, setup, NULL };
	struct plugin *plugin = calloc(1, sizeof(*plugin));

	if (!plugin)
		return NULL;
	plugin->osm = osm;
	plugin->engine = clearlane_new(osm->subn.opt.event_plugin_options, say, &osm->log);
	if (!plugin->engine ||
	    osm_register_external_routing_engine(osm, &module, plugin) != CL_SUCCESS) {
		destroy(plugin);
		return NULL;
	}
	return plugin;
}

osm_event_plugin_t osm_event_plugin = { OSM_VERSION, construct, destroy, NULL };
