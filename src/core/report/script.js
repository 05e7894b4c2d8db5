/* The page of qscope report. Everything of a job arrives as data and is shown as text: elements are made by el(), whose
   strings become text nodes; there is no innerHTML here, and the page's policy would run nothing anyway. */
"use strict";
(() => {
    const details = document.getElementsByClassName("detail-data");
    const rows = Array.from(document.getElementsByClassName("row-data"), (script, index) => ({ index, ...JSON.parse(script.textContent) }));
    const byId = id => document.getElementById(id);
    const search = byId("search"), list = byId("list"), detail = byId("detail");

    const VERDICTS = {
        pass: ["✓", "did what was agreed"],
        fail: ["✗", "ran, and did not do what was agreed"],
        rejected: ["⊘", "refused by the policy"],
        error: ["!", "qscope or the host could not tell"],
        aborted: ["■", "stopped from outside"],
        unreadable: ["?", "not a receipt"],
    };

    /* --- text and elements --- */

    /* What is not seen, or changes the direction of what follows it, is shown as what it is. */
    const UNSEEN = /([\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}])/u;
    const UNSEEN_IN_A_LINE = new RegExp(UNSEEN.source.replace("[", "[\\n\\t"), "u");

    function code(character) {
        const number = character.codePointAt(0);
        if (character === "\n") return "\\n";
        if (character === "\t") return "\\t";
        return number < 256 ? `\\x${number.toString(16).padStart(2, "0")}` : `\\u{${number.toString(16)}}`;
    }

    function spelled(text, unseen) {
        return String(text).split(unseen).map((part, i) => (i % 2 ? el("span.unseen", code(part)) : part));
    }

    const name = text => spelled(text, UNSEEN_IN_A_LINE);
    /* Whatever it is, in one line. */
    const short = value => (value === undefined || value === null ? null : (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 300));
    const lines = text => spelled(text, UNSEEN);

    /* el("tag.class.class", {attributes}?, children…): strings are text, lists are opened, null is nothing. */
    function el(tag, ...children) {
        const [tagName, ...classes] = tag.split(".");
        const element = document.createElement(tagName);
        if (classes.length) element.className = classes.join(" ");
        return fill(element, children);
    }

    function fill(element, children) {
        for (const child of children.flat(9)) {
            if (child === null || child === undefined || child === false) continue;
            if (typeof child === "object" && !(child instanceof Node))
                Object.entries(child).forEach(([key, value]) => element.setAttribute(key, value));
            else element.append(child);
        }
        return element;
    }

    function svg(tag, attributes, ...children) {
        return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), [attributes, ...children]);
    }

    const has = value => value !== null && value !== undefined;
    const listOf = value => (Array.isArray(value) ? value : []);
    const objectOf = value => (value && typeof value === "object" && !Array.isArray(value) ? value : {});
    const numberOf = value => (typeof value === "number" && Number.isFinite(value) ? value : null);
    const textOf = value => (typeof value === "string" ? value : null);

    function bytes(n) {
        const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let i = 0;
        while (n >= 1024 && i + 1 < units.length) {
            n /= 1024;
            i++;
        }
        return `${n >= 100 || i === 0 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)} ${units[i]}`;
    }

    function duration(ms) {
        if (ms < 1) return `${Math.round(ms * 1000)} µs`;
        if (ms < 1000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`;
        if (ms < 120000) return `${ms % 1000 === 0 ? ms / 1000 : (ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
        return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
    }

    const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many || `${one}s`}`;

    /* --- the list --- */

    const state = { verdicts: new Set(), reason: "", order: "given", shown: -1 };

    function badge(verdict) {
        const known = VERDICTS[verdict] ? verdict : "unreadable";
        return el(`span.badge.${known}`, { title: VERDICTS[known][1] }, VERDICTS[known][0]);
    }

    function makeRow(row) {
        const title = row.job || row.file;
        const numbers = [
            has(row.duration_ms) ? duration(row.duration_ms) : null,
            has(row.memory) ? bytes(row.memory) : null,
        ];
        row.text = [row.job, row.command, row.file, row.policy, row.error, ...listOf(row.codes)].join("\n").toLowerCase();
        row.element = el(
            "a.row",
            { href: `#${row.index + 1}` },
            badge(row.verdict),
            el("span.what", el("span.job", name(title)), el("code", name(row.error || row.command || ""))),
            el("span.numbers", numbers.filter(Boolean).map(text => el("span", text))),
            el("span.codes", listOf(row.codes).slice(0, 3).map(reason => el("span.code", name(reason)))),
        );
    }

    const ORDERS = {
        given: ["As given", (a, b) => a.index - b.index],
        verdict: ["By verdict", (a, b) => rank(b) - rank(a) || a.index - b.index],
        duration: ["Longest first", (a, b) => (b.duration_ms || 0) - (a.duration_ms || 0) || a.index - b.index],
        memory: ["Most memory first", (a, b) => (b.memory || 0) - (a.memory || 0) || a.index - b.index],
        cpu: ["Most CPU time first", (a, b) => (b.cpu_usec || 0) - (a.cpu_usec || 0) || a.index - b.index],
    };
    const rank = row => Object.keys(VERDICTS).indexOf(row.verdict);

    function isWanted(row, words) {
        return (
            (state.verdicts.size === 0 || state.verdicts.has(row.verdict)) &&
            (!state.reason || listOf(row.codes).includes(state.reason)) &&
            words.every(word => row.text.includes(word))
        );
    }

    let visible = rows;

    function filter() {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        visible = [];
        for (const row of rows) {
            row.element.hidden = !isWanted(row, words);
            if (!row.element.hidden) visible.push(row);
        }
        visible.sort(ORDERS[state.order][1]);
        byId("count").replaceChildren(
            visible.length === rows.length
                ? count(rows.length, "receipt")
                : `${visible.length.toLocaleString("en")} of ${count(rows.length, "receipt")}`,
        );
        for (const button of document.querySelectorAll("#verdicts button"))
            button.setAttribute("aria-pressed", state.verdicts.has(button.value));
    }

    function sort() {
        list.replaceChildren(...[...rows].sort(ORDERS[state.order][1]).map(row => row.element));
        filter();
    }

    function makeFilters() {
        const verdicts = new Map(Object.keys(VERDICTS).map(verdict => [verdict, 0]));
        const reasons = new Map();
        for (const row of rows) {
            verdicts.set(row.verdict, (verdicts.get(row.verdict) || 0) + 1);
            for (const reason of new Set(listOf(row.codes))) reasons.set(reason, (reasons.get(reason) || 0) + 1);
        }
        for (const [verdict, n] of verdicts) {
            if (n === 0) continue;
            const button = el(
                `button.${verdict}`,
                { type: "button", value: verdict, title: VERDICTS[verdict][1] },
                badge(verdict),
                el("b", n.toLocaleString("en")),
                ` ${verdict}`,
            );
            button.addEventListener("click", () => {
                if (!state.verdicts.delete(verdict)) state.verdicts.add(verdict);
                filter();
            });
            byId("verdicts").append(button);
            const part = el(`span.${verdict}`);
            part.style.flexGrow = n;
            byId("share").append(part);
        }
        byId("share").setAttribute("aria-label", [...verdicts].filter(([, n]) => n).map(([v, n]) => `${n} ${v}`).join(", "));
        byId("reason").append(el("option", { value: "" }, "Any reason"));
        for (const [reason, n] of [...reasons].sort((a, b) => b[1] - a[1]))
            byId("reason").append(el("option", { value: reason }, `${reason} (${n})`));
        for (const [order, [text]] of Object.entries(ORDERS)) byId("order").append(el("option", { value: order }, text));
        byId("reason").addEventListener("change", event => {
            state.reason = event.target.value;
            filter();
        });
        byId("order").addEventListener("change", event => {
            state.order = event.target.value;
            sort();
        });
        search.addEventListener("input", filter);
    }

    /* --- one receipt --- */

    const section = (title, ...content) => (content.flat().some(has) ? el("section", el("h2", title), content) : null);
    const note = text => el("p.note", text);
    const base = path => (textOf(path) || "?").split("/").pop() || path;

    /* "and 12 more", where a list does not hold all that there was. */
    function more(owner, key, total) {
        const held = listOf(objectOf(owner)[key]).length;
        const all = Math.max(numberOf(total) || 0, numberOf(objectOf(objectOf(owner).cut)[key]) || 0);
        return all > held ? note(`and ${(all - held).toLocaleString("en")} more that are not in this report`) : null;
    }

    function head(receipt, row, explanation) {
        const verdict = row.verdict;
        const end = receipt.timed_out
            ? `killed at its time limit of ${duration(receipt.timeout_sec * 1000)}`
            : has(receipt.signal)
                ? `ended by ${receipt.signal}`
                : has(receipt.exit_code)
                    ? `exit status ${receipt.exit_code}`
                    : !has(receipt.duration_ms)
                        ? "not started"
                        : verdict === "aborted"
                            ? "interrupted (aborted)"
                            : "not known";
        const facts = [
            ["end", end],
            ["took", has(receipt.duration_ms) ? duration(receipt.duration_ms) : null],
            ["policy", objectOf(receipt.policy).name],
            ["posture", receipt.posture],
            ["started", textOf(receipt.started_at) && receipt.started_at.replace("T", " ").replace(/\.\d+Z$/, " UTC")],
            ["workspace", receipt.cwd],
            ...["suite", "candidate", "case", "repeat"].map(key => [key, short(objectOf(receipt.x_eval)[key])]),
            ["meta", short(receipt.meta)],
            ["changes", objectOf(receipt.kept).state === "yes" ? "kept for qscope apply" : null],
            ["host", objectOf(receipt.host).hostname],
            ["run", receipt.run_id],
            ["file", row.file],
        ];
        return el(
            `div.head.${verdict}`,
            el("p.verdict", badge(verdict), el("b", verdict), el("span", explanation.sentence || "")),
            el("h1", name(receipt.job_id || "(no job id)")),
            has(receipt.rationale) ? el("p.rationale", name(receipt.rationale)) : null,
            el("pre.command", listOf(receipt.argv).map((word, i) => el(i ? "span" : "b", name(word), " "))),
            el("dl.facts", facts.filter(([, value]) => has(value)).map(([key, value]) => el("div", el("dt", key), el("dd", name(value))))),
        );
    }

    function reasons(explanation) {
        const row = (key, text) => (has(text) ? el("p", el("i", key), name(text)) : null);
        return section(
            "Why",
            listOf(explanation.reasons).map(reason =>
                el(
                    "div.reason",
                    el("p", el("span.code", name(reason.code)), el("b", name(reason.message || ""))),
                    row("means", reason.meaning),
                    row("check", reason.check),
                    row("next", reason.next),
                    row("receipt", reason.receipt_next),
                ),
            ),
        );
    }

    const signs = explanation =>
        section(
            "Look at this as well",
            listOf(explanation.signs).map(sign =>
                el("div.reason", el("p", el("b", name(sign.what))), has(sign.check) ? el("p", el("i", "check"), name(sign.check)) : null,
                    has(sign.next) ? el("p", el("i", "next"), name(sign.next)) : null),
            ),
        );

    /* Parents before children, each with how deep it lies. A pid may have been given twice. */
    function inOrder(tree) {
        const nodes = tree.map(process => ({ process: objectOf(process), children: [], start: numberOf(objectOf(process).start_ms) || 0 }));
        const latest = new Map(), roots = [], order = [];
        for (const node of nodes) {
            const parent = latest.get(node.process.ppid);
            (parent ? parent.children : roots).push(node);
            latest.set(node.process.pid, node);
        }
        const pending = roots.map(node => [node, 0]).reverse();
        while (pending.length) {
            const [node, depth] = pending.pop();
            order.push({ ...node, depth });
            for (const child of [...node.children].reverse()) pending.push([child, depth + 1]);
        }
        return order;
    }

    /* Round numbers along an axis. */
    function ticks(end) {
        const rough = end / 6, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(n => n * power >= rough) * power;
        const found = [];
        for (let at = 0; at <= end * 1.0001; at += step) found.push(at);
        return found;
    }

    function place(element, from, to, end) {
        element.style.left = `${(100 * from) / end}%`;
        if (has(to)) element.style.width = `${(100 * Math.max(to - from, 0)) / end}%`;
        return element;
    }

    function processRow(node, receipt, end, left, marks) {
        const process = node.process, alive = !has(numberOf(process.end_ms)), last = alive ? end : process.end_ms;
        const bad = has(process.signal) ? "signal" : process.exit_code > 0 ? "nonzero" : "good";
        const kind = left.has(process.pid) ? "left" : bad;
        const how = has(process.signal)
            ? process.signal
            : has(process.exit_code)
                ? `exit ${process.exit_code}`
                : left.has(process.pid)
                    ? "left, killed"
                    : "end not seen";
        const words = listOf(process.argv), title = base(process.program);
        const bar = place(el(`span.bar.${kind}${alive ? ".open" : ""}`), node.start, last, end);
        const track = el("span.track", bar, marks.map(([at, sort, text]) => place(el(`span.mark.${sort}`, { title: text }), at, null, end)));
        const label = el("span.label", el("b", name(title)), words.length > 1 ? [" ", name(words.slice(1).join(" "))] : null);
        label.style.paddingLeft = `${Math.min(node.depth, 8) * 14}px`;
        const facts = [
            ["program", process.program],
            ["arguments", words.length ? words.map(word => JSON.stringify(word)).join(" ") : "none of its own: a copy of its parent"],
            ["pid", has(process.ppid) ? `${process.pid}, made by ${process.ppid}` : process.pid],
            ["time", `${duration(node.start)} to ${alive ? "the end" : duration(last)}`],
            ["end", how],
            ...listOf(process.execs).map(exec => ["executed", `${exec.program} at ${duration(numberOf(exec.start_ms) || 0)}`]),
            ...marks.map(([at, , text]) => ["tried", `${text} at ${duration(at)}`]),
        ];
        return el(
            "details.process",
            el("summary", label, track, el("span.how", kind === "good" && process.exit_code === 0 ? duration(last - node.start) : how)),
            el("dl.facts", facts.map(([key, value]) => el("div", el("dt", key), el("dd", name(value))))),
        );
    }

    /* What a process tried, by its pid: [when, kind, text]. */
    function attempts(receipt) {
        const found = new Map();
        const add = (pid, at, sort, text) => has(at) && found.set(pid, [...(found.get(pid) || []), [at, sort, text]]);
        for (const item of listOf(receipt.egress).map(objectOf)) add(item.pid, numberOf(item.first_ms), "egress", destination(item));
        for (const item of listOf(objectOf(receipt.processes).denied).map(objectOf))
            add(item.pid, numberOf(item.start_ms), "denied", `to start ${item.program}, denied`);
        for (const item of listOf(objectOf(receipt.egress_info).refused).map(objectOf))
            add(item.pid, numberOf(item.first_ms), "egress", `${item.what}, refused`);
        return found;
    }

    const PROCESSES_FIRST = 40;

    function timeline(receipt) {
        const processes = objectOf(receipt.processes), tree = inOrder(listOf(processes.tree));
        if (!tree.length) return null;
        const left = new Set(listOf(processes.leftover).map(process => objectOf(process).pid));
        const end = Math.max(1, numberOf(receipt.duration_ms) || 0, ...tree.map(node => Math.max(node.start, numberOf(node.process.end_ms) || 0)));
        const tried = attempts(receipt);
        const make = node => {
            const marks = tried.get(node.process.pid) || [];
            tried.delete(node.process.pid);
            return processRow(node, receipt, end, left, marks.filter(([at]) => at <= end));
        };
        const axis = el("div.axis", el("span.track", ticks(end).map(at => place(el("span.tick", at ? duration(at) : "0"), at, null, end))));
        const box = el("div.timeline", axis, tree.slice(0, PROCESSES_FIRST).map(make));
        if (tree.length > PROCESSES_FIRST) {
            const rest = el("button.more", { type: "button" }, `Show ${tree.length - PROCESSES_FIRST} more`);
            rest.addEventListener("click", () => rest.replaceWith(...tree.slice(PROCESSES_FIRST).map(make)));
            box.append(rest);
        }
        const lost = numberOf(processes.lost);
        return section(
            `Processes over time`,
            box,
            more(processes, "tree", processes.total),
            lost ? note(`${count(lost, "event")} were missed: this is not all.`) : null,
        );
    }

    /* --- memory and CPU over time --- */

    /* points: [ms, value or null]; what is not known is a gap. */
    function area(points, end, top) {
        const x = at => ((1000 * at) / end).toFixed(1), y = value => (100 - (96 * value) / top).toFixed(1);
        const runs = [];
        let run = null;
        for (const [at, value] of points) {
            if (!has(value)) run = null;
            else if (run) run.push([at, value]);
            else runs.push((run = [[at, value]]));
        }
        const line = run => run.map(([at, value]) => `${x(at)},${y(value)}`).join(" L");
        return svg(
            "svg",
            { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" },
            runs.map(run => svg("path", { class: "fill", d: `M${x(run[0][0])},100 L${line(run)} L${x(run[run.length - 1][0])},100 Z` })),
            runs.map(run => svg("path", { class: "line", d: `M${line(run)}` })),
        );
    }

    function chart(title, points, end, top, format, bound) {
        const readout = el("span.readout");
        const plot = el("div.plot", area(points, end, top), bound ? el("span.bound", bound) : null, el("span.cursor"));
        const known = points.filter(([, value]) => has(value));
        const peak = Math.max(...known.map(([, value]) => value));
        const rest = `${format(peak)} at most`;
        readout.textContent = rest;
        plot.addEventListener("pointermove", event => {
            const frame = plot.getBoundingClientRect(), at = ((event.clientX - frame.left) / frame.width) * end;
            const near = known.reduce((a, b) => (Math.abs(b[0] - at) < Math.abs(a[0] - at) ? b : a));
            readout.textContent = `${format(near[1])} at ${duration(near[0])}`;
            plot.querySelector(".cursor").style.left = `${(100 * near[0]) / end}%`;
        });
        plot.addEventListener("pointerleave", () => (readout.textContent = rest));
        return el("figure.chart", el("figcaption", el("b", title), readout), plot, el("div.ends", el("span", "0"), el("span", duration(end))));
    }

    function overTime(receipt) {
        const samples = objectOf(objectOf(receipt.usage).samples), step = numberOf(samples.interval_ms);
        const memory = listOf(samples.memory_bytes), cpu = listOf(samples.cpu_usec);
        if (!step || Math.max(memory.length, cpu.length) < 2) return null;
        const end = step * Math.max(memory.length, cpu.length);
        const limit = numberOf(objectOf(objectOf(receipt.limits).set).memory);
        const charts = [];
        const memoryPoints = memory.map((value, i) => [(i + 0.5) * step, numberOf(value)]);
        const memoryPeak = Math.max(0, ...memoryPoints.map(([, value]) => value || 0));
        if (memoryPeak > 0) {
            const near = limit && limit < memoryPeak * 2;
            charts.push(chart("Memory", memoryPoints, end, near ? limit : memoryPeak, bytes, near ? `limit ${bytes(limit)}` : null));
        }
        const cpuPoints = [];
        let before = 0, since = 0;
        cpu.forEach((value, i) => {
            if (!has(numberOf(value))) return;
            cpuPoints.push([(i + 0.5) * step, (100 * Math.max(value - before, 0)) / (1000 * step * (i + 1 - since))]);
            before = value;
            since = i + 1;
        });
        if (cpuPoints.length > 1)
            charts.push(chart("CPU", cpuPoints, end, Math.max(100, ...cpuPoints.map(([, value]) => value)), value => `${Math.round(value)}%`, null));
        return charts.length ? section("Memory and CPU over time", el("div.charts", charts)) : null;
    }

    /* --- limits --- */

    function limits(receipt) {
        const limits = objectOf(receipt.limits), set = objectOf(limits.set), usage = objectOf(receipt.usage);
        const output = Math.max(numberOf(objectOf(receipt.stdout_info).bytes) || 0, numberOf(objectOf(receipt.stderr_info).bytes) || 0);
        const took = numberOf(receipt.duration_ms), cpu = numberOf(usage.cpu_usec);
        // What it left running used the CPU after its end, too, until it was frozen.
        const lived = has(took) ? took + (numberOf(objectOf(receipt.timing).drain) || 0) : 0;
        const seconds = value => duration(value * 1000), plain = value => value.toLocaleString("en");
        const hits = new Map(listOf(limits.hits).map(hit => [objectOf(hit).limit, objectOf(hit)]));
        const table = [
            ["time", has(took) ? took / 1000 : null, numberOf(receipt.timeout_sec), seconds, "timeout"],
            ["memory", usage.memory_peak_bytes, set.memory, bytes],
            ["swap", usage.swap_peak_bytes, set.swap, bytes],
            ["CPU time", has(cpu) ? cpu / 1e6 : null, set.cpu_time_sec, seconds, "cpu_time_sec"],
            ["CPU", has(cpu) && lived ? cpu / 10 / lived : null, parseFloat(set.cpu) || null, value => `${Math.round(value)}%`, "cpu"],
            ["tasks", usage.pids_peak, set.tasks, plain],
            ["disk", usage.disk_bytes, set.disk, bytes],
            ["files", usage.disk_inodes, set.inodes, plain, "inodes"],
            ["largest file", null, set.file_size, bytes, "file_size"],
            ["open files", null, set.open_files, plain, "open_files"],
            ["output", has(took) ? output : null, set.output, bytes],
        ];
        const made = table.map(([title, used, limit, format, key]) => {
            const hit = hits.get(key || title), over = key === "timeout" && receipt.timed_out;
            used = numberOf(used);
            limit = numberOf(limit);
            if (!hit && !over && !has(used)) return null;
            const meter = el(limit ? "span.meter" : "span", el("span"));
            if (limit && has(used)) meter.firstChild.style.width = `${100 * Math.min(used / limit, 1)}%`;
            if (hit || over) meter.classList.add("hit");
            return el(
                "div.limit",
                el("span", title),
                meter,
                el("span.amount", has(used) ? format(used) : "", has(limit) ? el("i", ` of ${format(limit)}`) : null),
                hit ? el("span.code.bad", name(`${hit.counter} ${hit.count}`)) : over ? el("span.code.bad", "reached") : null,
            );
        });
        return section("Limits", el("div.limits", made));
    }

    /* --- files, network, leftovers --- */

    /* A unified diff, whose every line begins with what it is. */
    function diffLine(line) {
        const kind = { "+": "added", "-": "removed", "@": "hunk", " ": "same" }[line[0]] || "aside";
        return el(`span.${kind}`, lines(line), "\n");
    }

    function diffBox(diff) {
        const text = textOf(diff.text);
        if (!has(text)) return note(`No diff: ${textOf(diff.why) || "not known"}`);
        return [el("pre.diff", text.replace(/\n$/, "").split("\n").map(diffLine)), diff.cut ? note("Cut here: the diff is longer.") : null];
    }

    /* Why there are none, or not all. */
    function aboutDiffs(diffs) {
        const left = numberOf(diffs.left_out);
        return has(diffs.note) ? el("p.note", "No diffs: ", name(diffs.note)) : left ? note(`${count(left, "diff")} more ${left === 1 ? "is" : "are"} not in this report.`) : null;
    }

    function files(receipt, diffs) {
        if (!has(receipt.fs)) return null;
        const shown = new Map(listOf(diffs.files).map(objectOf).map(diff => [diff.path, diff]));
        const fs = objectOf(receipt.fs), totals = objectOf(fs.totals), unexpected = new Set(listOf(fs.unexpected));
        const moved = new Map(listOf(fs.renames).map(rename => [objectOf(rename).to, objectOf(rename)]));
        const size = node => (has(numberOf(node.size)) ? bytes(node.size) : textOf(node.type) && node.type !== "file" ? node.type : "");
        const entry = (sign, item, rest) => [
            el(
                `div.file.${{ "+": "added", "−": "removed", "~": "changed" }[sign]}`,
                el("b", sign),
                el("span.path", name(item.path), item.type === "symlink" ? [" → ", name(item.target || "?")] : null),
                el("span.size", rest),
                el(
                    "span.codes",
                    unexpected.has(item.path) ? el("span.code.bad", "not allowed") : null,
                    moved.has(item.path) ? el("span.code", name(`was ${moved.get(item.path).from}`)) : null,
                    item.setuid ? el("span.code.bad", "setuid") : null,
                    listOf(item.what).filter(what => what !== "content").map(what => el("span.code", name(what))),
                ),
            ),
            shown.has(item.path) ? diffBox(shown.get(item.path)) : null,
        ];
        const change = item => {
            const before = objectOf(item.before), after = objectOf(item.after);
            const sizes = [size(before), size(after)], modes = [before.mode, after.mode];
            return [
                sizes[0] === sizes[1] ? sizes[0] : `${sizes[0]} → ${sizes[1]}`,
                modes[0] !== modes[1] ? ` ${modes[0]} → ${modes[1]}` : "",
            ];
        };
        const all = [
            ...listOf(fs.added).map(objectOf).map(item => entry("+", item, size(item))),
            ...listOf(fs.changed).map(objectOf).map(item => entry("~", item, change(item))),
            ...listOf(fs.removed).map(objectOf).map(item => entry("−", item, size(item))),
        ];
        return section(
            "Files changed",
            all.length ? el("div.files", all) : note("None."),
            ["added", "changed", "removed"].map(kind => {
                const rest = more(fs, kind, totals[kind]);
                return rest ? el("p.note", `${kind}: ${rest.textContent}`) : null;
            }),
            has(fs.unexpected) ? null : note("What may change was not agreed: this is not judged."),
            all.length ? aboutDiffs(diffs) : null,
        );
    }

    function table(columns, items) {
        return el(
            "div.scroll",
            el(
                "table",
                el("thead", el("tr", columns.map(([title]) => el("th", title)))),
                el("tbody", items.map(item => el("tr", columns.map(([, value]) => el("td", value(objectOf(item))))))),
            ),
        );
    }

    const program = item => (has(item.program) ? [el("b", name(base(item.program))), has(item.pid) ? el("i", ` ${item.pid}`) : null] : el("i", "not known"));
    const address = (host, port) => (has(host) ? `${String(host).includes(":") ? `[${host}]` : host}${has(port) ? `:${port}` : ""}` : "");
    const destination = item => `${item.protocol} ${has(item.name) ? `${item.name}${has(item.port) && item.protocol !== "dns" ? `:${item.port}` : ""}` : address(item.address, item.port)}`;

    function egress(receipt) {
        const items = listOf(receipt.egress), info = objectOf(receipt.egress_info), refused = listOf(info.refused);
        return section(
            "Attempts to leave",
            items.length
                ? table(
                    [
                        ["to", item => el("b", name(destination(item)))],
                        ["address", item => name(address(item.address, item.port))],
                        ["by", program],
                        ["times", item => String(item.count)],
                        ["first", item => (has(numberOf(item.first_ms)) ? duration(item.first_ms) : "")],
                    ],
                    items,
                )
                : null,
            items.length ? note("None of them got out.") : null,
            more(receipt, "egress"),
            refused.length
                ? table([["asked for", item => name(item.what)], ["by", program], ["times", item => String(item.count)]], refused)
                : null,
        );
    }

    function socketName(item) {
        if (has(item.local_address)) {
            const remote = has(item.remote_address) ? ` → ${address(item.remote_address, item.remote_port)}` : "";
            return `${item.protocol || item.family} ${address(item.local_address, item.local_port)}${remote}`;
        }
        return `${item.family} ${has(item.name) ? (item.abstract ? `@${item.name}` : item.name) : "without a name"}`;
    }

    function sockets(receipt) {
        const sockets = objectOf(receipt.sockets), columns = [["socket", item => el("b", name(socketName(item)))], ["state", item => name(item.state || "")], ["by", program]];
        const listening = listOf(sockets.listening);
        return section(
            "Where it listened",
            listening.length ? table([...columns, ["at the end", item => (item.left ? el("span.code.bad", "still open") : "closed")]], listening) : null,
        );
    }

    function leftovers(receipt) {
        const processes = listOf(objectOf(receipt.processes).leftover), open = listOf(objectOf(receipt.sockets).leftover);
        const fds = listOf(receipt.fds), ipc = listOf(receipt.ipc);
        return section(
            "Left behind, and gone now",
            processes.length
                ? table([["process", program], ["arguments", item => name(listOf(item.argv).join(" "))], ["state", item => name(item.state || "")]], processes)
                : null,
            open.length ? table([["socket", item => name(socketName(item))], ["state", item => name(item.state || "")], ["by", program]], open) : null,
            fds.length
                ? table([["open file", item => name(item.target || "?")], ["", item => (item.deleted ? "deleted" : "")], ["by", item => `${item.pid}, descriptor ${item.fd}`]], fds)
                : null,
            ipc.length ? table([["shared", item => name(item.kind || "?")], ["name", item => name(item.name || item.key || "")], ["size", item => (has(numberOf(item.size)) ? bytes(item.size) : "")]], ipc) : null,
        );
    }

    function output(receipt) {
        const stream = key => {
            const text = textOf(receipt[key]), info = objectOf(receipt[`${key}_info`]);
            if (!text) return null;
            const facts = [
                has(numberOf(info.bytes)) ? bytes(info.bytes) : null,
                info.truncated ? "head and tail" : null,
                info.utf8 === false ? "not all of it is text" : null,
                info.after_exit_bytes ? `${bytes(info.after_exit_bytes)} after its end` : null,
            ];
            return el("div.stream", el("h3", key, el("i", facts.filter(Boolean).join(", "))), el("pre", lines(text)));
        };
        return section("Output", stream("stdout"), stream("stderr"));
    }

    function isolation(receipt) {
        const facts = Object.entries(objectOf(receipt.isolation)).map(([key, fact]) => [key, objectOf(fact)]);
        const broken = facts.filter(([, fact]) => !fact.holds);
        if (!facts.length) return null;
        const row = ([key, fact]) => el("tr", el("td", fact.holds ? "✓" : "✗"), el("td", name(key)), el("td", name(has(fact.observed) ? fact.observed : "not seen")), el("td", fact.holds ? "" : name(`expected: ${fact.expected}`)));
        return section(
            "Isolation",
            broken.length ? el("div.scroll", el("table", broken.map(row))) : null,
            el("details", el("summary", broken.length ? `The ${facts.length - broken.length} that hold` : `All ${facts.length} facts were observed from outside and hold`),
                el("div.scroll", el("table", facts.filter(([, fact]) => fact.holds).map(row)))),
        );
    }

    function blindSpots(explanation) {
        const spots = listOf(explanation.blind_spots);
        return section("Not seen", spots.length ? note("Silence about it is not innocence.") : null, spots.length ? el("ul", spots.map(spot => el("li", name(spot.spot)))) : null);
    }

    function phases(receipt) {
        const timing = Object.entries(objectOf(receipt.timing)).filter(([, ms]) => numberOf(ms) > 0);
        const all = timing.reduce((sum, [, ms]) => sum + ms, 0);
        if (!all) return null;
        const bar = el("div.phases", timing.map(([phase, ms]) => {
            const part = el(`span.phase.${phase}`, { title: `${phase}: ${duration(ms)}` }, ms / all > 0.12 ? phase : "");
            part.style.flexGrow = ms;
            return part;
        }));
        return section("Where the time went", bar, el("p.note", timing.map(([phase, ms]) => `${phase} ${duration(ms)}`).join(" · ")));
    }

    function broken(row) {
        return [
            el("div.head.unreadable", el("p.verdict", badge("unreadable"), el("b", "unreadable"), el("span", "This file is not a receipt.")),
                el("h1", name(row.file)), el("p", name(row.error))),
        ];
    }

    function whole(row) {
        if (!details[row.index]) {
            document.addEventListener("DOMContentLoaded", () => show(state.shown), { once: true });
            return [el("p.empty", "The page is still loading.")];
        }
        const content = JSON.parse(details[row.index].textContent);
        if (!content) return broken(row);
        const receipt = objectOf(content.receipt), explanation = objectOf(content.explanation), diffs = objectOf(content.diffs);
        return [
            () => head(receipt, row, explanation),
            () => reasons(explanation),
            () => signs(explanation),
            () => timeline(receipt),
            () => overTime(receipt),
            () => limits(receipt),
            () => files(receipt, diffs),
            () => egress(receipt),
            () => sockets(receipt),
            () => leftovers(receipt),
            () => output(receipt),
            () => isolation(receipt),
            () => phases(receipt),
            () => blindSpots(explanation),
        ].map(part);
    }

    /* A receipt may hold anything where nothing relies on it: what cannot be shown hides no more than itself. */
    function part(make) {
        try {
            return make();
        } catch (error) {
            return el("section.odd", note("A part of this receipt is not of the form that this page knows, and is not shown."));
        }
    }

    /* --- moving about --- */

    const isNarrow = () => matchMedia("(max-width: 860px)").matches;

    function show(index) {
        const row = rows[index];
        if (rows[state.shown]) rows[state.shown].element.removeAttribute("aria-current");
        state.shown = row ? index : -1;
        document.body.classList.toggle("open", Boolean(row));
        if (!row) {
            detail.replaceChildren(el("p.empty", rows.length ? "Choose a receipt." : "There is no receipt here."));
            return;
        }
        row.element.setAttribute("aria-current", "true");
        if (!isNarrow()) row.element.scrollIntoView({ block: "nearest" });
        const back = el("a.back", { href: "#" }, "‹ All receipts");
        detail.replaceChildren(back, ...whole(row).filter(has));
        detail.scrollTop = 0;
        if (isNarrow()) scrollTo(0, 0);
    }

    const fromHash = () => show(/^#\d+$/.test(location.hash) ? Number(location.hash.slice(1)) - 1 : -1);

    function step(by) {
        if (!visible.length) return;
        const focused = visible.findIndex(row => row.element === document.activeElement);
        const from = focused >= 0 ? focused : visible.findIndex(row => row.index === state.shown);
        const row = visible[from < 0 ? (by > 0 ? 0 : visible.length - 1) : Math.min(Math.max(from + by, 0), visible.length - 1)];
        row.element.focus({ preventScroll: true });
        if (isNarrow()) row.element.scrollIntoView({ block: "nearest" });
        else {
            history.replaceState(null, "", `#${row.index + 1}`);
            show(row.index);
        }
    }

    const KEYS = {
        j: () => step(1),
        k: () => step(-1),
        "/": () => search.focus(),
        Escape: () => {
            if (document.body.classList.contains("open") && isNarrow()) location.hash = "";
            else if (search.value) {
                search.value = "";
                filter();
            }
            search.blur();
        },
        Enter: () => state.shown >= 0 && detail.focus(),
    };

    document.addEventListener("keydown", event => {
        const typing = event.target.matches("input, select");
        if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
        if (typing && event.key !== "Escape" && !(event.target === search && event.key === "Enter")) return;
        if (event.target.matches("summary, button, .back") && event.key === "Enter") return;
        if (event.key === "Enter" && event.target.matches(".row") && event.target.getAttribute("aria-current") !== "true") return;
        if (event.key === "Enter" && event.target === search) {
            step(0);
            return;
        }
        event.preventDefault();
        KEYS[event.key]();
    });

    rows.forEach(makeRow);
    makeFilters();
    sort();
    addEventListener("hashchange", fromHash);
    fromHash();
    if (state.shown < 0 && rows.length && !isNarrow()) show((rows.find(row => row.verdict !== "pass") || rows[0]).index);
    document.documentElement.dataset.ready = performance.now().toFixed(0);
})();
