// The graph, folded by scope: what lies in one scope is drawn at a time, its inner scopes as one box each.

const boxHeight = 40;
const tensorHeight = 18;  // below an operator, what it makes
const layerGap = 34;
const boxGap = 18;

class GraphView {
  constructor(view, crumbs, legend, data) {
    this.view = view;
    this.crumbs = crumbs;
    this.operators = data.ranks.flatMap((rank, r) => rank.operators.map((op, o) => ({...op, id: data.offsets[r] + o})));
    this.edges = data.edges;  // [from, to, tokens], by id
    this.places = [...new Set(this.operators.map((op) => op.location))].sort();
    this.colours = new Map(this.places.map((place, i) => [place, i < hues.length ? hues[i] : otherHue]));
    legend.replaceChildren(...legendOf(this.places.map((place) => [place, this.colours.get(place)])));
    this.scope = [];
    this.open(this.commonScope());
  }

  /** While there is just one thing at the outside, what lies in it says more. */
  commonScope() {
    const scope = [];
    for (;;) {
      const names = new Set(this.inside(scope).map((op) => op.path.split('/')[scope.length]));
      const [only] = names;
      if (names.size !== 1 || this.inside([...scope, only]).length < 2) return scope;
      scope.push(only);
    }
  }

  inside(scope) {
    const prefix = scope.length > 0 ? scope.join('/') + '/' : '';
    return this.operators.filter((op) => op.path.startsWith(prefix));
  }

  open(scope) {
    this.scope = scope;
    this.drawCrumbs();
    this.draw();
  }

  drawCrumbs() {
    const links = ['all', ...this.scope].map((name, depth) => {
      const link = element('a', {role: 'button', tabindex: '0'}, name);
      const go = () => this.open(this.scope.slice(0, depth));
      link.addEventListener('click', go);
      link.addEventListener('keydown', (event) => { if (event.key === 'Enter') go(); });
      return link;
    });
    this.crumbs.replaceChildren(...links.flatMap((link, i) => (i > 0 ? [' / ', link] : [link])));
  }

  /** The boxes of this scope: inner scopes, operators, and what lies outside and is joined to them. */
  collect() {
    const prefix = this.scope.length > 0 ? this.scope.join('/') + '/' : '';
    const boxes = new Map();
    const boxOf = new Map();
    const add = (key, make) => {
      if (!boxes.has(key)) boxes.set(key, {key, operators: [], first: Infinity, ...make()});
      return boxes.get(key);
    };
    for (const op of this.operators) {
      if (!op.path.startsWith(prefix)) continue;
      const rest = op.path.slice(prefix.length).split('/');
      const box = rest.length > 1
        ? add('scope ' + rest[0], () => ({kind: 'scope', name: rest[0]}))
        : add('operator ' + op.id, () => ({kind: 'operator', name: rest[0], op}));
      box.operators.push(op);
      box.first = Math.min(box.first, op.id);
      boxOf.set(op.id, box);
    }
    for (const box of boxes.values()) {
      if (box.kind !== 'scope' || box.operators.length > 1) continue;  // a scope of one operator is that operator
      [box.op] = box.operators;
      Object.assign(box, {kind: 'operator', name: box.op.path.slice(prefix.length)});
    }
    const byId = new Map(this.operators.map((op) => [op.id, op]));
    const edges = new Map();
    for (const [from, to, tokens] of this.edges) {
      let source = boxOf.get(from);
      let target = boxOf.get(to);
      if (!source && !target) continue;
      if (!source || !target) {
        const op = byId.get(source ? to : from);
        const name = this.outsideName(op);
        const side = source ? 'to ' : 'from ';
        const box = add(side + name, () => ({kind: 'outside', name, side, first: source ? 1e9 : -1}));
        if (source) target = box; else source = box;
      }
      if (source === target) continue;
      const key = source.key + '\n' + target.key;
      const edge = edges.get(key) || {source, target, count: 0, late: true};
      ++edge.count;
      edge.late = edge.late && tokens > 0;
      edges.set(key, edge);
    }
    return {boxes: [...boxes.values()].sort((a, b) => a.first - b.first), edges: [...edges.values()]};
  }

  /** Of an operator outside, the scope that lies beside this one. */
  outsideName(op) {
    const parts = op.path.split('/');
    let common = 0;
    while (common < this.scope.length && parts[common] === this.scope[common]) ++common;
    return parts.slice(0, Math.min(parts.length, common + 1)).join('/');
  }

  /** Layers from the top: each box below all that it needs; lines that go back to earlier boxes don't count. */
  layOut(boxes, edges) {
    const order = new Map(boxes.map((box, i) => [box, i]));
    boxes.forEach((box) => {
      box.layer = 0;
      box.before = [];
      box.after = [];
    });
    for (const edge of edges) {
      edge.isForward = !edge.late && order.get(edge.source) < order.get(edge.target);
      if (!edge.isForward) continue;
      edge.source.after.push(edge.target);
      edge.target.before.push(edge.source);
    }
    for (const box of boxes) for (const each of box.before) box.layer = Math.max(box.layer, each.layer + 1);
    // What comes from outside stands just above who needs it.
    for (const box of boxes) {
      if (box.before.length === 0 && box.after.length > 0) {
        box.layer = Math.max(0, Math.min(...box.after.map((each) => each.layer)) - 1);
      }
    }
    const layers = [];
    for (const box of boxes) (layers[box.layer] = layers[box.layer] || []).push(box);
    const filled = layers.filter(Boolean);
    filled.forEach((layer, depth) => layer.forEach((box) => { box.layer = depth; }));
    const widest = 8;  // boxes: a layer of more is broken into several lines
    const lines = filled.flatMap((layer) =>
      Array.from({length: Math.ceil(layer.length / widest)}, (_, i) => layer.slice(i * widest, (i + 1) * widest)));
    this.sortLines(lines);
    return lines;
  }

  /** Puts each box near the middle of what it is joined to, going down and up a few times. */
  sortLines(lines) {
    const place = () => lines.forEach((line) => {
      let x = 0;
      for (const box of line) {
        box.x = x;
        x += box.width + boxGap;
      }
      for (const box of line) box.x += (this.width - x + boxGap) / 2;
    });
    const middle = (box) => box.x + box.width / 2;
    place();
    for (let round = 0; round < 6; ++round) {
      const down = round % 2 === 0;
      for (const line of down ? lines : [...lines].reverse()) {
        for (const box of line) {
          const joined = down ? box.before : box.after;
          box.pull = joined.length > 0 ? joined.reduce((sum, each) => sum + middle(each), 0) / joined.length : middle(box);
        }
        line.sort((a, b) => a.pull - b.pull);
      }
      place();
    }
  }

  texts(box) {
    const short = (text, length) => (text.length > length ? text.slice(0, length - 1) + '…' : text);
    if (box.kind === 'scope') return [short(box.name, 26), box.operators.length + ' operators'];
    if (box.kind === 'outside') return [short(box.name, 26), box.side === 'to ' ? 'goes on there' : 'comes from there'];
    return [short(box.op.type, 26), short(box.name, 30), short(box.op.output.replaceAll(' channels_last', ''), 34)];
  }

  height(box) {
    return boxHeight + (box.text[2] ? tensorHeight : 0);
  }

  draw() {
    const {boxes, edges} = this.collect();
    for (const box of boxes) {
      box.text = this.texts(box);
      box.width = Math.max(70, 6.6 * Math.max(box.text[0].length, ...box.text.slice(1).map((text) => 0.9 * text.length)) + 20);
    }
    this.width = 0;
    const lines = this.layOut(boxes, edges);
    this.width = Math.max(...lines.map((line) => line.reduce((sum, box) => sum + box.width + boxGap, 0))) + 40;
    this.sortLines(lines);
    let height = 16;
    for (const line of lines) {
      for (const box of line) box.y = height;
      height += Math.max(...line.map((box) => this.height(box))) + layerGap;
    }
    const svg = svgElement('svg', {width: this.width, height, viewBox: `0 0 ${this.width} ${height}`});
    svg.append(svgElement('defs', {}, svgElement('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4,
      markerWidth: 6, markerHeight: 6, orient: 'auto'}, svgElement('path', {d: 'M0 0L8 4L0 8z', fill: 'var(--quiet)'}))));
    for (const edge of edges) {
      const far = edge.source.kind === 'outside' || edge.target.kind === 'outside';
      edge.line = svgElement('path', {class: 'edge' + (edge.late ? ' late' : '') + (far ? ' far' : ''), d: this.line(edge), 'marker-end': 'url(#arrow)'});
      svg.append(edge.line);
    }
    for (const box of boxes) svg.append(this.drawBox(box, edges, svg));
    this.view.replaceChildren(svg);
    this.view.scrollTop = 0;
    this.view.scrollLeft = Math.max(0, (this.width - this.view.clientWidth) / 2);
    this.boxCount = boxes.length;
  }

  line({source, target}) {
    const x1 = source.x + source.width / 2;
    const x2 = target.x + target.width / 2;
    if (target.y > source.y) {
      const y1 = source.y + this.height(source);
      const bend = Math.min(60, (target.y - y1) / 2);
      return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${target.y - bend} ${x2} ${target.y}`;
    }
    const side = Math.max(source.x + source.width, target.x + target.width) + 24;
    const y1 = source.y + boxHeight / 2;
    const y2 = target.y + boxHeight / 2;
    return `M${source.x + source.width} ${y1}C${side} ${y1} ${side} ${y2} ${target.x + target.width} ${y2}`;
  }

  drawBox(box, edges, svg) {
    const places = [...new Set(box.operators.map((op) => op.location))].sort();
    const colour = places.length === 1 ? this.colours.get(places[0]) : 'var(--quiet)';
    const group = svgElement('g', {class: `node ${box.kind}`, transform: `translate(${box.x} ${box.y})`});
    if (box.kind === 'scope') {
      group.append(svgElement('rect', {class: 'back', x: 4, y: 4, width: box.width, height: boxHeight, rx: 6, stroke: colour}));
    }
    group.append(
      svgElement('rect', {width: box.width, height: boxHeight, rx: box.kind === 'operator' ? 3 : 6, stroke: colour}));
    places.slice(0, 8).forEach((place, i, shown) => group.append(svgElement('rect', {
      x: 1, width: box.width - 2, y: 1 + i * 4 / shown.length, height: 4 / shown.length, stroke: 'none',
      style: 'fill:' + this.colours.get(place)})));
    group.append(svgElement('text', {x: box.width / 2, y: 18}, box.text[0]),
      svgElement('text', {class: 'small', x: box.width / 2, y: 32}, box.text[1]));
    if (box.text[2]) {
      group.append(
        svgElement('rect', {x: 6, y: boxHeight, width: box.width - 12, height: tensorHeight, rx: 9}),
        svgElement('rect', {class: 'tensor', x: 6, y: boxHeight, width: box.width - 12, height: tensorHeight, rx: 9,
          style: `fill:${colour};stroke:${colour}`}),
        svgElement('text', {class: 'small tensor', x: box.width / 2, y: boxHeight + 13}, box.text[2]));
    }
    group.addEventListener('pointermove', (event) => {
      svg.classList.add('lit');
      for (const edge of edges) edge.line.classList.toggle('on', edge.source === box || edge.target === box);
      showTip(event, this.title(box), this.rows(box, places));
    });
    group.addEventListener('pointerleave', () => {
      svg.classList.remove('lit');
      showTip();
    });
    if (box.kind !== 'operator') {
      group.addEventListener('click', () => {
        showTip();
        this.open(box.kind === 'scope' ? [...this.scope, box.name] : this.parentOf(box.name));
      });
    }
    return group;
  }

  /** The scope in which something outside is a box. */
  parentOf(name) {
    const parts = name.split('/');
    return this.inside(parts).length > 1 ? parts : parts.slice(0, -1);
  }

  title(box) {
    return box.kind === 'operator' ? box.op.path : box.kind === 'scope' ? [...this.scope, box.name].join('/') : box.name;
  }

  rows(box, places) {
    if (box.kind === 'outside') return [['', box.side === 'to ' ? 'reads what is made here' : 'makes what is read here']];
    if (box.kind === 'scope') {
      const operations = box.operators.reduce((sum, op) => sum + op.operations, 0);
      return [['operators', box.operators.length], ['cost', amountText(operations, 'flop') + ' a step'], ['at', places.join(', ')]];
    }
    const rows = [['type', box.op.type], ['tensors', box.op.shapes], ['at', box.op.location]];
    if (box.op.operations > 0) rows.push(['cost', amountText(box.op.operations, 'flop')]);
    return rows;
  }
}
