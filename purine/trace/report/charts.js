// Bars and curves.

/** A bar of shares that add up to at most 1: [{name, share, colour, text}]. */
function shareBar(parts) {
  const bar = element('div', {class: 'bar'});
  for (const {name, share, colour, text} of parts) {
    if (!(share > 0)) continue;
    const piece = element('i', {style: `width:${100 * share}%;background:${colour}`});
    piece.addEventListener('pointermove', (event) => showTip(event, name, [['share', shareText(share)], ...(text || [])]));
    piece.addEventListener('pointerleave', () => showTip());
    bar.append(piece);
  }
  return bar;
}

function legendOf(entries) {
  return entries.map(([name, colour]) => element('span', {}, element('i', {style: 'background:' + colour}), name));
}

/** A row of a name, a bar and a text. */
function barRow(name, parts, text) {
  return element('div', {class: 'row'}, element('span', {title: name}, name), shareBar(parts), element('span', {}, text));
}

/**
 * Curves over one axis. series: [{name, colour, x: [], y: [], fill, dots}], all x ascending; options: {title, xName,
 * xText, yText, low, high, level: {value, name}, steps: true where values hold until the next}.
 */
function curveChart(series, options) {
  const width = options.width || 330;
  const height = options.height || 160;
  const left = options.width > 600 ? 64 : 52;
  const bottom = 22;
  const top = 8;
  const right = 10;
  const all = series.flatMap((each) => Array.from(each.y)).filter(Number.isFinite);
  const xs = series.flatMap((each) => [each.x[0], each.x[each.x.length - 1]]);
  const x0 = Math.min(...xs);
  const x1 = Math.max(...xs) > x0 ? Math.max(...xs) : x0 + 1;
  let low = options.low ?? all.reduce((a, b) => Math.min(a, b), Infinity);
  let high = options.high ?? all.reduce((a, b) => Math.max(a, b), -Infinity);
  if (options.level) high = Math.max(high, options.level.value);
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const x = (value) => left + (value - x0) / (x1 - x0) * (width - left - right);
  const y = (value) => top + (high - value) / (high - low) * (height - top - bottom);
  const svg = svgElement('svg', {viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': options.title});
  for (const tick of ticks(low, high, 5)) {
    svg.append(svgElement('line', {class: 'grid', x1: left, x2: width - right, y1: y(tick), y2: y(tick)}),
      svgElement('text', {x: left - 8, y: y(tick) + 4, 'text-anchor': 'end'}, options.yText(tick)));
  }
  for (const tick of ticks(x0, x1, width / 80)) {
    svg.append(svgElement('text', {x: x(tick), y: height - 5, 'text-anchor': 'middle'}, options.xText(tick)));
  }
  for (const each of series) {
    let path = '';
    for (let i = 0; i < each.x.length; ++i) {
      if (!Number.isFinite(each.y[i])) continue;
      const before = path === '' ? 'M' : options.steps ? `H${x(each.x[i]).toFixed(1)}L` : 'L';
      path += `${before}${x(each.x[i]).toFixed(1)} ${y(each.y[i]).toFixed(1)}`;
    }
    if (each.fill && path !== '') {
      const close = `L${x(each.x[each.x.length - 1])} ${y(low)}L${x(each.x[0])} ${y(low)}Z`;
      svg.append(svgElement('path', {d: path + close, fill: each.colour, opacity: 0.22}));
    }
    svg.append(svgElement('path', {d: path, fill: 'none', stroke: each.colour, 'stroke-width': 1.8, 'stroke-linejoin': 'round'}));
    if (each.dots) {
      each.x.forEach((value, i) => svg.append(svgElement('circle', {cx: x(value), cy: y(each.y[i]), r: 3, fill: each.colour})));
    }
  }
  if (options.level) {
    const at = y(options.level.value);
    svg.append(svgElement('line', {x1: left, x2: width - right, y1: at, y2: at, stroke: 'var(--quiet)', 'stroke-dasharray': '5 4'}),
      svgElement('text', {x: width - right, y: at + 13, 'text-anchor': 'end'}, options.level.name));
  }
  const cursor = svgElement('line', {class: 'cursor', y1: top, y2: height - bottom, visibility: 'hidden'});
  svg.append(cursor);
  svg.addEventListener('pointermove', (event) => {
    const box = svg.getBoundingClientRect();
    const value = x0 + ((event.clientX - box.left) / box.width * width - left) / (width - left - right) * (x1 - x0);
    const rows = [];
    let at = null;
    for (const each of series) {
      let i = Math.max(0, firstAbove(each.x, value) - 1);
      if (!options.steps && i + 1 < each.x.length && each.x[i + 1] - value < value - each.x[i]) ++i;
      at = at ?? each.x[i];
      rows.push([each.name, options.yText(each.y[i]) + (each.x[i] === at ? '' : ` (${options.xText(each.x[i])})`)]);
    }
    cursor.setAttribute('x1', x(at));
    cursor.setAttribute('x2', x(at));
    cursor.setAttribute('visibility', 'visible');
    showTip(event, `${options.xName} ${options.xText(at)}`, rows);
  });
  svg.addEventListener('pointerleave', () => {
    cursor.setAttribute('visibility', 'hidden');
    showTip();
  });
  const legend = series.length > 1
    ? [element('div', {class: 'legend'}, ...legendOf(series.map((each) => [each.name, each.colour])))] : [];
  return element('div', {class: 'chart'}, element('h3', {}, options.title), ...legend, svg);
}
