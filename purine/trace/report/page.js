// Fills the page from its data.

function fillHead(data) {
  document.title = data.title + ' · Purine';
  document.getElementById('title').textContent = data.title;
  document.getElementById('subtitle').textContent = data.subtitle;
  document.getElementById('tiles').replaceChildren(...data.tiles.map(([name, value]) =>
    element('div', {class: 'tile'}, element('b', {}, value), element('span', {}, name))));
}

function fillWhy(data) {
  const why = data.why;
  const section = document.getElementById('why');
  section.hidden = why.steps === 0;
  if (why.steps === 0) return;
  const parts = why.path.filter((use) => use.share > 0).map((use) => ({
    name: use.what, share: use.share, colour: useColours[use.what], text: [['a step', timeText(use.seconds * 1e9)]]}));
  const entries = parts.map(({name, share, colour}) => [`${name} ${shareText(share)}`, colour]);
  document.getElementById('shares').replaceChildren(
    shareBar(parts), element('div', {class: 'legend'}, 'A step takes ' + timeText(why.step_seconds * 1e9) +
      ' on its critical path: ', ...legendOf(entries)));
  document.getElementById('causes').replaceChildren(...why.causes.map((cause, i) =>
    element('li', {}, cause.text + '.', ...(i > 0 && cause.hint === why.causes[i - 1].hint ? [] : [element('p', {}, cause.hint + '.')]))));
  fillWhatIfs(why);
  document.getElementById('operators').replaceChildren(...why.operators.slice(0, 10).map((type) => barRow(
    type.what, [{name: type.what, share: type.share, colour: data.timeline.hues.get(type.what) || otherHue}],
    `${timeText(type.seconds * 1e9)}  ${shareText(type.share)}`)));
}

/** What a replay says of other speeds; a change within its own error is none. */
function fillWhatIfs(why) {
  const error = Math.abs(why.replayed_seconds / why.step_seconds - 1);
  const rows = why.what_ifs.map(({what, seconds}) => {
    const change = seconds / why.step_seconds - 1;
    const text = Math.abs(change) > error
      ? `${timeText(seconds * 1e9)} a step, ${change > 0 ? '+' : '−'}${shareText(Math.abs(change))}` : 'about the same';
    return element('tr', {}, element('td', {}, what), element('td', {}, text));
  });
  const section = document.getElementById('what-ifs');
  const simulated = simulatedRows(why);
  section.hidden = rows.length + simulated.length === 0;
  section.replaceChildren(
    ...(rows.length > 0 ? [element('h3', {}, `By replaying the trace, whose own error is ${shareText(error)}`), element('table', {}, ...rows)] : []),
    ...simulated);
}

/** What a simulation says of another batch and of other schemes, against what it says of the job as it was. */
function simulatedRows(why) {
  if (!why.simulated) return [];
  const {as_it_was: own, changes} = why.simulated;
  const error = Math.abs(own.step_seconds / why.step_seconds - 1);
  const rows = changes.map(({what, step_seconds, images_per_s}) => {
    const change = images_per_s / own.images_per_s - 1;
    return element('tr', {}, element('td', {}, what), element('td', {},
      `${timeText(step_seconds * 1e9)} a step, ${change < 0 ? '−' : '+'}${shareText(Math.abs(change))} images a second`));
  });
  return rows.length === 0 ? []
    : [element('h3', {}, `By simulating the job, whose own error is ${shareText(error)}`), element('table', {}, ...rows)];
}

function fillTimeline(data) {
  const timeline = new Timeline(document.getElementById('lanes'), data);
  document.getElementById('legend').replaceChildren(...legendOf(timeline.legend()));
  const found = document.getElementById('found');
  const search = document.getElementById('search');
  const show = () => {
    const count = timeline.found.length;
    found.textContent = search.value.trim() === '' ? ''
      : count === 0 ? 'none' : timeline.foundAt < 0 ? String(count) : `${timeline.foundAt + 1} of ${count}`;
    for (const id of ['previous', 'next']) document.getElementById(id).disabled = count === 0;
  };
  const go = (direction) => {
    timeline.goTo(direction);
    show();
  };
  search.addEventListener('input', () => {
    timeline.find(search.value);
    show();
  });
  search.addEventListener('keydown', (event) => { if (event.key === 'Enter') go(event.shiftKey ? -1 : 1); });
  const press = (id, action) => document.getElementById(id).addEventListener('click', action);
  press('previous', () => go(-1));
  press('next', () => go(1));
  press('in', () => timeline.zoom(0.5));
  press('out', () => timeline.zoom(2));
  press('step', () => timeline.showStep());
  press('whole', () => timeline.showAll());
  document.getElementById('show-path').addEventListener('change', (event) => {
    timeline.showsPath = event.target.checked;
    timeline.redraw();
  });
  show();
  return timeline;
}

function fillOverlap(data) {
  const ranks = data.why.ranks;
  document.getElementById('overlap').hidden = ranks.length === 0;
  const rows = ranks.map((rank, i) => {
    const hidden = rank.transfers - rank.exposed;
    const parts = [
      {name: 'computing', share: rank.computing - hidden, colour: 'var(--compute)'},
      {name: 'computing, with transfers under it', share: hidden, colour: 'color-mix(in srgb, var(--compute) 50%, var(--transfer))'},
      {name: 'transfers alone (exposed)', share: rank.exposed, colour: 'var(--transfer)'}];
    const text = rank.transfers > 0 ? `${shareText(hidden / rank.transfers)} hidden` : `workers ${shareText(rank.busy)} busy`;
    return barRow(data.ranks[i].name, parts, text);
  });
  const legend = element('div', {class: 'legend'}, ...legendOf([
    ['computing', 'var(--compute)'],
    ['with transfers under it', 'color-mix(in srgb, var(--compute) 50%, var(--transfer))'],
    ['transfers alone', 'var(--transfer)'], ['nothing', 'var(--idle)']]));
  document.getElementById('overlap-bars').replaceChildren(legend, ...rows);
}

function fillMemory(data) {
  const charts = data.memory.filter((place) => place.times.length > 1).map((place) => {
    const times = place.times.map((time) => time - place.times[0]);
    return curveChart(
      [{name: 'in use', colour: 'var(--compute)', x: times, y: place.bytes, fill: true}],
      {title: `${place.location}: ${amountText(place.variables, 'B')} of variables, and for all else`, xName: 'at', xText: timeText,
        yText: (value) => amountText(value, 'B'), low: 0, level: {value: place.arena, name: 'planned ' + amountText(place.arena, 'B')},
        steps: true, width: 1100, height: 200});
  });
  document.getElementById('memory').hidden = charts.length === 0;
  document.getElementById('memory-charts').replaceChildren(...charts);
}

function fillCurves(data) {
  const lines = (phase) => data.metrics.filter((line) => line.phase === phase);
  const curve = (name, phase, key, colour, dots) => {
    const of = lines(phase).filter((line) => Number.isFinite(line[key]));
    return of.length > 0 ? [{name, colour, x: of.map((line) => line.step), y: of.map((line) => line[key]), dots}] : [];
  };
  const chart = (title, key, options = {}) => {
    const series = [...curve('training', 'train', key, 'var(--compute)'), ...curve('test', 'test', key, 'var(--transfer)', true)];
    return series.length > 0 && series.some((each) => each.x.length > 1)
      ? [curveChart(series, {title, xName: 'step', xText: (value) => String(Math.round(value)), yText: digits, ...options})] : [];
  };
  const charts = [...chart('Loss', 'loss'), ...chart('Accuracy', 'accuracy', {yText: shareText}),
    ...chart('Images per second', 'images_per_s', {low: 0}), ...chart('Learning rate', 'learning_rate', {yText: (value) => value.toPrecision(3)})];
  document.getElementById('curves').hidden = charts.length === 0;
  document.getElementById('curve-charts').replaceChildren(...charts);
}

function fillAbout(data) {
  document.getElementById('machines').replaceChildren(...data.ranks.map((rank) => element('div', {},
    element('h3', {}, rank.name),
    element('table', {}, ...rank.about.map(([name, value]) =>
      element('tr', {}, element('td', {}, name), element('td', {}, value)))))));
  const job = document.getElementById('job');
  job.hidden = data.job === '';
  job.textContent = data.job;
}

/** Sections that have nothing to show need no link. */
function fillLinks() {
  for (const link of document.querySelectorAll('nav a')) link.hidden = document.querySelector(link.hash).hidden;
}

function fillPage() {
  const data = JSON.parse(document.getElementById('data').textContent);
  fillHead(data);
  data.timeline = fillTimeline(data);
  fillWhy(data);
  fillOverlap(data);
  fillMemory(data);
  fillCurves(data);
  const graph = new GraphView(document.getElementById('graph-view'), document.getElementById('crumbs'),
    document.getElementById('graph-legend'), data);
  fillAbout(data);
  fillLinks();
  window.purine = {timeline: data.timeline, graph};  // for those who look closer, in a console
}

document.addEventListener('DOMContentLoaded', fillPage);
