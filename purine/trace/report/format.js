// Numbers and names as text, and small helpers for the page.

/** Three digits at least where there are some: 1234, 56.7, 8.90. */
function digits(value) {
  const size = Math.abs(value);
  return size === 0 ? '0' : value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** Nanoseconds. */
function timeText(nanoseconds) {
  const size = Math.abs(nanoseconds);
  if (size >= 1e9) return digits(nanoseconds / 1e9) + ' s';
  if (size >= 1e6) return digits(nanoseconds / 1e6) + ' ms';
  if (size >= 1e3) return digits(nanoseconds / 1e3) + ' µs';
  return Math.round(nanoseconds) + ' ns';
}

/** A count of something with a unit: 1.23 Gflop. */
function amountText(value, unit) {
  for (const [factor, prefix] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(value) >= factor) return digits(value / factor) + ' ' + prefix + unit;
  }
  return digits(value) + ' ' + unit;
}

function shareText(share) {
  return (100 * share).toFixed(1) + '%';
}

/** Round numbers, at most `count` and at least a third of them, from `low` to `high`. */
function ticks(low, high, count) {
  const rough = (high - low) / count;
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= rough * (1 - 1e-9));
  const result = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) result.push(i * step);
  return result;
}

/** The first index of a sorted array whose value is above a limit. */
function firstAbove(sorted, limit, length = sorted.length) {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] > limit) high = middle; else low = middle + 1;
  }
  return low;
}

/** An element with attributes and children; texts become text, never markup. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'style') made.style.cssText = value; else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function svgElement(name, attributes = {}, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A colour of the style sheet: `--compute`. */
function styleColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const useColours = {
  compute: 'var(--compute)', data: 'var(--data)', copy: 'var(--copy)', transfer: 'var(--transfer)', idle: 'var(--idle)',
};

/** Hues that are told apart in both themes, for kinds of operators and for places. */
const hues = ['#3b74d6', '#e0852f', '#45a35f', '#8f63d4', '#b0723f', '#5aa7e6', '#8a9a35', '#c76bb4'];
const otherHue = '#8b95a3';

/** Shows rows of names and values beside the pointer; without rows hides them. */
function showTip(event, title, rows) {
  const tip = document.getElementById('tip');
  tip.hidden = !rows;
  if (!rows) return;
  const table = element('table', {}, ...rows.map(([name, value]) =>
    element('tr', {}, element('td', {}, name), element('td', {}, String(value)))));
  tip.replaceChildren(element('b', {}, title), table);
  const box = tip.getBoundingClientRect();
  const x = event.clientX + 16 + box.width > innerWidth ? event.clientX - 12 - box.width : event.clientX + 16;
  const y = Math.min(event.clientY + 14, innerHeight - box.height - 8);
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, y) + 'px';
}
