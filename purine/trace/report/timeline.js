// What ran when: a canvas of lanes. However many events there are, a picture costs a few looks for each of its pixels:
// the first visible event of a row is found by halving, and what lies within one pixel is drawn as one.

const axisHeight = 24;
const stepsHeight = 20;
const rankHeight = 22;
const labelWidth = 168;

/** One line of events that don't overlap, sorted. Times are nanoseconds in arrays of their own. */
class Row {
  constructor(rank, lane, events, indices) {
    this.rank = rank;
    this.lane = lane;
    this.indices = indices;  // into the rank's events
    this.start = Float64Array.from(indices, (i) => events.start[i]);
    this.end = Float64Array.from(indices, (i) => events.end[i]);
    this.busy = new Float64Array(indices.length + 1);  // time of all events before
    for (let i = 0; i < indices.length; ++i) this.busy[i + 1] = this.busy[i] + this.end[i] - this.start[i];
    this.matches = null;  // how many events before are looked for
    this.y = 0;
    this.height = 0;
  }

  /** The event at a time, or within `near` of it; -1 if there is none. */
  at(time, near) {
    const i = firstAbove(this.end, time);
    if (i < this.start.length && this.start[i] - near <= time) return i;
    return i > 0 && this.end[i - 1] + near >= time ? i - 1 : -1;
  }
}

/** The events of a rank, whose columns come as differences. */
function unpackEvents(packed) {
  const count = packed.op.length;
  const events = {
    count, op: packed.op, lane: packed.lane, row: packed.row, iteration: packed.iteration, part: packed.part,
    waited: packed.waited, start: new Float64Array(count), end: new Float64Array(count),
  };
  let time = 0;
  for (let i = 0; i < count; ++i) {
    time += packed.start[i];
    events.start[i] = time;
    events.end[i] = time + packed.length[i];
  }
  return events;
}

class Timeline {
  constructor(canvas, data) {
    this.canvas = canvas;
    this.context = canvas.getContext('2d');
    this.ranks = data.ranks;
    this.path = data.path;
    this.showsPath = false;
    this.found = [];  // {row, index} in order of time
    this.foundAt = -1;
    this.selected = null;
    this.rows = [];
    this.headers = [];
    this.unpack();
    this.colourTypes();
    this.findSteps();
    this.findPath();
    this.begin = this.first;
    this.end = this.last;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(canvas.parentElement);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
    this.resize();
  }

  unpack() {
    this.first = Infinity;
    this.last = -Infinity;
    this.ranks.forEach((rank, r) => {
      rank.events = unpackEvents(rank.packed);
      const byRow = rank.lanes.map((lane) => Array.from({length: lane.rows}, () => []));
      for (let i = 0; i < rank.events.count; ++i) {
        byRow[rank.events.lane[i]][rank.events.row[i]].push(i);
        this.first = Math.min(this.first, rank.events.start[i]);
        this.last = Math.max(this.last, rank.events.end[i]);
      }
      rank.lanes.forEach((lane, l) => {
        lane.drawn = byRow[l].map((indices) => new Row(r, l, rank.events, indices));
        this.rows.push(...lane.drawn);
      });
      rank.parts = new Map();  // of an execution
      for (let i = 0; i < rank.events.count; ++i) {
        const key = rank.events.op[i] + ' ' + rank.events.iteration[i];
        rank.parts.set(key, (rank.parts.get(key) || 0) + 1);
      }
    });
    if (!(this.last > this.first)) [this.first, this.last] = [0, 1];
  }

  /** The kinds of operators that take the most time have colours of their own. */
  colourTypes() {
    const times = new Map();
    for (const rank of this.ranks) {
      for (let i = 0; i < rank.events.count; ++i) {
        const op = rank.operators[rank.events.op[i]];
        if (op.use !== 'compute') continue;
        times.set(op.type, (times.get(op.type) || 0) + rank.events.end[i] - rank.events.start[i]);
      }
    }
    const largest = [...times].sort((a, b) => b[1] - a[1]).slice(0, hues.length).map(([type]) => type);
    this.hues = new Map(largest.map((type, i) => [type, hues[i]]));
    this.hasOthers = times.size > largest.length;
  }

  legend() {
    const used = new Set(this.ranks.flatMap((rank) => rank.operators.map((op) => op.use)));
    const entries = [...this.hues];
    if (this.hasOthers) entries.push(['other operators', otherHue]);
    for (const use of ['data', 'copy', 'transfer']) if (used.has(use)) entries.push([use, useColours[use]]);
    return entries;
  }

  colour(op) {
    if (op.use !== 'compute') return this.useHues[op.use];
    return this.hues.get(op.type) || otherHue;
  }

  findSteps() {
    const steps = new Map();
    for (const rank of this.ranks) {
      for (let i = 0; i < rank.events.count; ++i) {
        const step = steps.get(rank.events.iteration[i]) || {begin: Infinity, end: -Infinity};
        step.begin = Math.min(step.begin, rank.events.start[i]);
        step.end = Math.max(step.end, rank.events.end[i]);
        steps.set(rank.events.iteration[i], step);
      }
    }
    this.steps = [...steps].map(([number, step]) => ({number, ...step})).sort((a, b) => a.number - b.number);
  }

  /** The critical path's stretches, each with the row that its event lies in. */
  findPath() {
    for (const stretch of this.path) {
      const {events, lanes} = this.ranks[stretch.rank];
      stretch.row = lanes[events.lane[stretch.event]].drawn[events.row[stretch.event]];
    }
    this.pathEnds = Float64Array.from(this.path, (stretch) => stretch.end);
  }

  // Places.

  resize() {
    const width = Math.max(320, this.canvas.parentElement.clientWidth - 40);
    const rows = this.rows.length;
    const full = Math.max(6, Math.min(20, Math.floor(620 / Math.max(1, rows))));
    let y = axisHeight + stepsHeight;
    this.headers = [];
    for (const rank of this.ranks) {
      this.headers.push({rank, y});
      y += rankHeight;
      for (const lane of rank.lanes) {
        lane.y = y;
        for (const row of lane.drawn) {
          row.y = y;
          row.height = lane.rows > 1 ? Math.max(4, Math.min(full, Math.floor(32 / lane.rows))) : full;
          y += row.height + (lane.rows > 1 ? 1 : 0);
        }
        y += 3;
      }
    }
    this.width = width;
    this.height = y + 4;
    this.ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.canvas.style.width = width + 'px';
    this.canvas.style.height = this.height + 'px';
    this.redraw();
  }

  x(time) {
    return labelWidth + (time - this.begin) / (this.end - this.begin) * (this.width - labelWidth);
  }

  time(x) {
    return this.begin + (x - labelWidth) / (this.width - labelWidth) * (this.end - this.begin);
  }

  /** Shows a range of times, not beyond what there is. */
  show(begin, end) {
    const whole = this.last - this.first;
    const length = Math.min(whole * 1.04, Math.max(50, end - begin));
    const middle = (begin + end) / 2;
    const margin = whole * 0.02;
    this.begin = Math.min(Math.max(middle - length / 2, this.first - margin), this.last + margin - length);
    this.end = this.begin + length;
    this.redraw();
  }

  showAll() {
    this.show(this.first, this.last);
  }

  /** A step from the middle of the trace. */
  showStep() {
    const step = this.steps[Math.floor(this.steps.length / 2)];
    if (step) this.show(step.begin, step.end);
  }

  zoom(factor, x = (labelWidth + this.width) / 2) {
    const time = this.time(x);
    const length = Math.max(50, (this.end - this.begin) * factor);
    const part = (time - this.begin) / (this.end - this.begin);
    this.show(time - part * length, time + (1 - part) * length);
  }

  move(share) {
    const by = share * (this.end - this.begin);
    this.show(this.begin + by, this.end + by);
  }

  // Finding.

  /** Marks the operators whose path or type has all words; the number of their events. */
  find(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.found = [];
    this.foundAt = -1;
    this.selected = null;
    for (const row of this.rows) {
      row.matches = null;
      if (words.length === 0) continue;
      const {events, operators} = this.ranks[row.rank];
      row.matches = new Int32Array(row.indices.length + 1);
      row.indices.forEach((index, i) => {
        const op = operators[events.op[index]];
        op.text = op.text || (op.path + ' ' + op.type).toLowerCase();
        const matches = words.every((word) => op.text.includes(word));
        row.matches[i + 1] = row.matches[i] + (matches ? 1 : 0);
        if (matches) this.found.push({row, index: i});
      });
    }
    this.found.sort((a, b) => a.row.start[a.index] - b.row.start[b.index]);
    this.redraw();
    return this.found.length;
  }

  /** Goes to the next match, or with -1 to the one before. */
  goTo(direction) {
    if (this.found.length === 0) return;
    const count = this.found.length;
    this.foundAt = this.foundAt < 0 && direction < 0 ? count - 1 : (this.foundAt + direction + count) % count;
    const {row, index} = this.found[this.foundAt];
    this.showEvent(row, index);
  }

  showEvent(row, index) {
    this.selected = {row, index};
    const length = Math.max(row.end[index] - row.start[index], 100);
    const middle = (row.start[index] + row.end[index]) / 2;
    this.show(middle - 8 * length, middle + 8 * length);
  }

  // Drawing.

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.draw();
    });
  }

  draw() {
    const began = performance.now();
    const c = this.context;
    this.useHues = Object.fromEntries(['compute', 'data', 'copy', 'transfer', 'idle'].map(
      (use) => [use, styleColour('--' + use)]));
    this.inks = {text: styleColour('--text'), quiet: styleColour('--quiet'), line: styleColour('--line'),
      card: styleColour('--card'), stripe: styleColour('--stripe'), path: styleColour('--path')};
    c.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    c.fillStyle = this.inks.card;
    c.fillRect(0, 0, this.width, this.height);
    c.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    c.textBaseline = 'middle';
    this.rectangles = 0;
    this.drawAxis();
    this.drawLabels();
    c.save();
    c.beginPath();
    c.rect(labelWidth, 0, this.width - labelWidth, this.height);
    c.clip();
    this.drawSteps();
    for (const row of this.rows) this.drawRow(row);
    if (this.showsPath) this.drawPath();
    if (this.selected) this.drawSelected();
    c.restore();
    this.milliseconds = performance.now() - began;
  }

  drawAxis() {
    const c = this.context;
    const base = this.first;
    for (const tick of ticks(this.begin - base, this.end - base, Math.max(2, (this.width - labelWidth) / 110))) {
      const x = Math.round(this.x(tick + base)) + 0.5;
      if (x < labelWidth) continue;
      c.strokeStyle = this.inks.line;
      c.beginPath();
      c.moveTo(x, axisHeight - 4);
      c.lineTo(x, this.height);
      c.stroke();
      c.fillStyle = this.inks.quiet;
      const text = timeText(tick);
      if (x + 4 + c.measureText(text).width < this.width) c.fillText(text, x + 4, axisHeight / 2);
    }
  }

  drawLabels() {
    const c = this.context;
    c.fillStyle = this.inks.quiet;
    c.fillText('steps', 0, axisHeight + stepsHeight / 2);
    for (const {rank, y} of this.headers) {
      c.fillStyle = this.inks.text;
      c.font = '600 12px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
      c.fillText(rank.name, 0, y + rankHeight / 2 + 1);
      c.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
      for (const lane of rank.lanes) {
        const height = lane.drawn.reduce((sum, row) => sum + row.height, 0);
        c.fillStyle = this.inks.quiet;
        if (height >= 9) c.fillText(this.cut(lane.name, labelWidth - 16), 8, lane.y + Math.min(height, 34) / 2);
        c.fillStyle = this.inks.stripe;
        c.globalAlpha = 0.7;
        c.fillRect(labelWidth, lane.y, this.width - labelWidth, height + (lane.rows > 1 ? lane.rows : 0));
        c.globalAlpha = 1;
      }
    }
  }

  drawSteps() {
    const c = this.context;
    this.steps.forEach((step, i) => {
      const x = this.x(step.begin);
      const width = this.x(step.end) - x;
      if (x > this.width || x + width < labelWidth) return;
      const y = axisHeight + (i % 2) * (stepsHeight / 2);
      c.fillStyle = this.inks.quiet;
      c.globalAlpha = i % 2 ? 0.28 : 0.45;
      c.fillRect(x, y, Math.max(1, width - 1), stepsHeight / 2 - 1);
      c.globalAlpha = 1;
      if (width < 36) return;
      c.fillStyle = this.inks.text;
      c.font = '9px system-ui, "DejaVu Sans", sans-serif';
      c.fillText('step ' + step.number, Math.max(x, labelWidth) + 4, y + stepsHeight / 4);
      c.font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
    });
  }

  drawRow(row) {
    const c = this.context;
    const {events, operators} = this.ranks[row.rank];
    const perPixel = (this.end - this.begin) / (this.width - labelWidth);
    const count = row.start.length;
    let i = firstAbove(row.end, this.begin);
    while (i < count && row.start[i] < this.end) {
      const op = operators[events.op[row.indices[i]]];
      const x = this.x(row.start[i]);
      const width = (row.end[i] - row.start[i]) / perPixel;
      ++this.rectangles;
      if (width >= 1) {
        c.globalAlpha = row.matches && row.matches[i + 1] === row.matches[i] ? 0.13 : 1;
        c.fillStyle = this.colour(op);
        c.fillRect(x, row.y, width > 3 ? width - 0.5 : width, row.height);
        if (width > 34 && row.height >= 11) this.drawName(op, x, width, row);
        ++i;
        continue;
      }
      // All that lies within this pixel, as one, as dense as it is busy.
      const pixel = Math.floor(x);
      const limit = this.time(pixel + 1);
      let after = Math.max(i + 1, firstAbove(row.start, limit));
      if (after - 1 > i && row.end[after - 1] - limit > perPixel) --after;
      const density = Math.min(1, (row.busy[after] - row.busy[i]) / perPixel);
      const dimmed = row.matches && row.matches[after] === row.matches[i];
      c.globalAlpha = dimmed ? 0.13 * density : Math.max(row.matches ? 1 : 0.3, density);
      c.fillStyle = this.colour(operators[events.op[row.indices[(i + after) >> 1]]]);
      c.fillRect(pixel, row.y, 1, row.height);
      i = after;
    }
    c.globalAlpha = 1;
  }

  drawName(op, x, width, row) {
    const c = this.context;
    const left = Math.max(x, labelWidth);
    const room = Math.min(x + width, this.width) - left - 8;
    if (room < 26) return;
    const text = this.cut(room > 150 ? op.path : op.path.slice(op.path.lastIndexOf('/') + 1), room);
    c.fillStyle = '#ffffff';
    c.fillText(text, left + 4, row.y + row.height / 2 + 0.5);
  }

  cut(text, room) {
    const c = this.context;
    if (c.measureText(text).width <= room) return text;
    let length = text.length;
    while (length > 1 && c.measureText(text.slice(0, length) + '…').width > room) length = Math.floor(length * 0.85);
    return text.slice(0, length) + '…';
  }

  drawPath() {
    const c = this.context;
    let i = firstAbove(this.pathEnds, this.begin);
    c.fillStyle = this.inks.path;
    c.strokeStyle = this.inks.path;
    c.globalAlpha = 0.9;
    let before = null;
    let drawnTo = -1;
    for (; i < this.path.length && this.path[i].begin < this.end; ++i) {
      const {row, begin, end, use} = this.path[i];
      const x = this.x(begin);
      const right = this.x(end);
      if (right < drawnTo + 0.7 && before === row) continue;
      if (before && before !== row && right >= drawnTo + 0.7) {
        const top = Math.min(before.y, row.y) + 1;
        const bottom = Math.max(before.y + before.height, row.y + row.height);
        c.fillRect(x - 0.5, top, 1, bottom - top);
      }
      if (use === 'idle') {
        for (let dot = x; dot < right; dot += 5) c.fillRect(dot, row.y + row.height - 2, Math.min(2, right - dot), 2);
      } else {
        c.fillRect(x, row.y + row.height - 2.5, Math.max(0.7, right - x), 2.5);
      }
      before = row;
      drawnTo = Math.max(drawnTo, right);
    }
    c.globalAlpha = 1;
  }

  drawSelected() {
    const {row, index} = this.selected;
    const c = this.context;
    const x = this.x(row.start[index]);
    const width = Math.max(3, this.x(row.end[index]) - x);
    c.strokeStyle = this.inks.path;
    c.lineWidth = 2;
    c.strokeRect(x - 1, row.y - 1, width + 2, row.height + 2);
    c.lineWidth = 1;
  }

  // Pointer and keys.

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      const x = event.offsetX;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.move((event.deltaX || event.deltaY) / this.width);
      } else {
        this.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY)) * 0.0022), Math.max(labelWidth, x));
      }
    }, {passive: false});
    let drag = null;
    canvas.addEventListener('pointerdown', (event) => {
      drag = {x: event.clientX, begin: this.begin, end: this.end};
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener('pointerup', () => { drag = null; });
    canvas.addEventListener('pointermove', (event) => {
      if (drag) {
        const by = (drag.x - event.clientX) / (this.width - labelWidth) * (drag.end - drag.begin);
        this.show(drag.begin + by, drag.end + by);
      }
      this.tell(event);
    });
    canvas.addEventListener('pointerleave', () => showTip());
    canvas.addEventListener('dblclick', (event) => {
      const hit = this.hit(event.offsetX, event.offsetY);
      if (hit) this.showEvent(hit.row, hit.index);
    });
    canvas.addEventListener('keydown', (event) => {
      const actions = {
        '+': () => this.zoom(0.6), '=': () => this.zoom(0.6), '-': () => this.zoom(1.6), '0': () => this.showAll(),
        '1': () => this.showStep(), ArrowLeft: () => this.move(-0.15), ArrowRight: () => this.move(0.15),
      };
      if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  /** The event at a place of the canvas. */
  hit(x, y) {
    if (x < labelWidth) return null;
    const row = this.rows.find((each) => y >= each.y && y < each.y + each.height + 1);
    if (!row) return null;
    const index = row.at(this.time(x), 2 * (this.end - this.begin) / this.width);
    return index < 0 ? null : {row, index};
  }

  tell(event) {
    const hit = this.hit(event.offsetX, event.offsetY);
    if (!hit) {
      showTip();
      return;
    }
    const {title, rows} = this.describe(hit.row, hit.index);
    showTip(event, title, rows);
  }

  /** What is told of an event: operator, shapes, cost, rate. */
  describe(row, index) {
    const rank = this.ranks[row.rank];
    const i = row.indices[index];
    const op = rank.operators[rank.events.op[i]];
    const length = row.end[index] - row.start[index];
    const parts = rank.parts.get(rank.events.op[i] + ' ' + rank.events.iteration[i]);
    const rows = [['type', op.type], ['step', rank.events.iteration[i]], ['took', timeText(length)],
      ['at', timeText(row.start[index] - this.first)], ['location', op.location]];
    if (parts > 1) rows.push(['part', `${rank.events.part[i] + 1} of ${parts}`]);
    if (rank.events.waited[i] > 1000) rows.push(['waited before', timeText(rank.events.waited[i])]);
    if (op.shapes) rows.push(['shapes', op.shapes]);
    const seconds = length / 1e9;
    if (op.message) {
      rows.push(['message', amountText(op.message, 'B')]);
      if (seconds > 0) rows.push(['rate', amountText(8 * op.message / seconds, 'bit/s')]);
    } else {
      if (op.operations > 0) {
        rows.push(['cost', amountText(op.operations, 'flop')]);
        if (seconds > 0) rows.push(['rate', amountText(op.operations / parts / seconds, 'flop/s')]);
      }
      if (op.bytes > 0) {
        rows.push(['memory traffic', amountText(op.bytes, 'B') +
          (seconds > 0 ? ', ' + amountText(op.bytes / parts / seconds, 'B/s') : '')]);
      }
    }
    return {title: op.path, rows};
  }
}
