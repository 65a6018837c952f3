/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cmd/report_view.h"

#include "base/vec.h"
#include "cmd/figures.h"
#include "profile/calltree.h"
#include "profile/waits.h"

/* A node whose children are being drawn. */
struct level {
	uint32_t end;  /* of its subtree */
	uint32_t left; /* visible children to come */
	bool is_branching;
	size_t prefix_len;
};

struct tree_view {
	const struct load *loaded;
	const struct report_view *how;
	const struct calltree *tree;
	struct line line;
	struct strbuf prefix;
	VEC(struct level) levels;
};

static void tree_view_release(struct tree_view *v)
{
	line_release(&v->line);
	strbuf_release(&v->prefix);
	vec_release(&v->levels);
}

static bool is_visible(const struct tree_view *v, uint32_t node)
{
	return 100 * (double)v->tree->nodes[node].total >=
	       v->how->min_percent * (double)v->loaded->ticks;
}

static int open_node(struct tree_view *v, uint32_t node)
{
	struct level level = { .end = v->tree->nodes[node].end, .prefix_len = v->prefix.len };

	for (uint32_t c = node + 1; c < level.end && is_visible(v, c); c = v->tree->nodes[c].end)
		level.left++;
	level.is_branching = level.left > 1;
	return vec_push(&v->levels, level);
}

static int put_node(struct tree_view *v, uint32_t node, const char *branch)
{
	const struct calltree_node *n = &v->tree->nodes[node];
	struct line *l = &v->line;

	put_percent(l, n->total, v->loaded->ticks);
	line_put(l, STYLE_PLAIN, "  ");
	put_percent(l, n->self, v->loaded->ticks);
	line_put(l, STYLE_PLAIN, "  ");
	line_put(l, STYLE_DIM, strbuf_str(&v->prefix));
	line_put(l, STYLE_DIM, branch);
	line_put_name(l, wait_is_marker(v->loaded->profile, n->frame) ? STYLE_COOL : STYLE_PLAIN,
		      v->loaded->profile, n->frame);
	line_put(l, STYLE_PLAIN, "  ");
	line_put_place(l, STYLE_DIM, v->loaded->profile, n->frame, v->how->by_line);
	return line_end(l);
}

/*
 * Callees are below their caller; where it has only one, without a branch and not further in, so
 * that deep stacks stay readable. No recursion: a file may hold stacks of any depth.
 */
static int put_nodes(struct tree_view *v)
{
	static const char *const ascii[] = { "|- ", "`- ", "|  ", "   " };
	static const char *const unicode[] = { "├─ ", "└─ ", "│  ", "   " };
	const char *const *drawn = v->line.t->has_unicode ? unicode : ascii;
	int r = open_node(v, 0);

	for (uint32_t node = 1; !r && v->levels.len;) {
		struct level *level = &v->levels.items[v->levels.len - 1];
		bool is_last;

		strbuf_truncate(&v->prefix, level->prefix_len);
		if (!level->left) {
			node = level->end;
			v->levels.len--;
			continue;
		}
		is_last = --level->left == 0;
		r = put_node(v, node, level->is_branching ? drawn[is_last] : "");
		if (!r && level->is_branching)
			r = strbuf_puts(&v->prefix, drawn[2 + is_last]);
		if (!r)
			r = open_node(v, node++);
	}
	return r;
}

int report_tree_put(const struct load *loaded, const struct report_view *how,
		    const struct terminal *t)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_(tree_view_release) struct tree_view v = {
		.loaded = loaded, .how = how, .line = LINE_INIT(t), .prefix = STRBUF_INIT
	};
	int r = calltree_new(loaded->profile, &loaded->cube, KIND_TICKS,
			     how->by_line ? CALLTREE_BY_LINE : CALLTREE_BY_FUNCTION, &tree);

	if (r < 0)
		return r;
	v.tree = tree;
	line_put(&v.line, STYLE_BOLD, " total    self  function");
	r = line_end(&v.line);
	return r ? r : put_nodes(&v);
}
