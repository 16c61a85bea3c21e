/** The page's whole style: two palettes, one column on a phone, two where there is room. */
export const style = `
:root { color-scheme: light dark;
  --back: #f6f7f9; --card: #fff; --line: #dfe3e8; --text: #1c2430; --dim: #5c6876;
  --good: #1a7f4b; --warn: #9a6200; --bad: #c22f3d; --busy: #1f6fd1; --code: #eef1f5; }
@media (prefers-color-scheme: dark) { :root {
  --back: #12161c; --card: #1a2029; --line: #2d3643; --text: #e4e9f0; --dim: #97a3b3;
  --good: #4cc38a; --warn: #e0a63c; --bad: #ff7b83; --busy: #6cb0ff; --code: #252d39; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 1120px; margin: 0 auto; padding: 0 16px; }
header { padding-top: 18px; display: flex; flex-wrap: wrap; gap: 4px 16px; align-items: baseline; }
h1 { font-size: 20px; margin: 0; } h2 { font-size: 15px; margin: 0 0 8px; }
nav a { margin-right: 10px; } a { color: var(--busy); } nav a[aria-current] { color: inherit; font-weight: 600; }
.badge { display: inline-block; border: 1px solid currentColor; border-radius: 99px; padding: 1px 11px; font-weight: 600; font-size: 14px; }
.good, .converged { color: var(--good); } .warn, .differs, .undeclared { color: var(--warn); } .bad, .blocked, .tainted { color: var(--bad); }
.busy, .in_flight { color: var(--busy); } .dim, .unknown { color: var(--dim); }
.facts { color: var(--dim); margin: 6px 0 14px; }
.facts span { margin-right: 16px; }
.cards { display: grid; gap: 14px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr)); margin-bottom: 14px; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 13px 15px; min-width: 0; }
section.wide { grid-column: 1 / -1; } section.alarm { border-color: var(--bad); }
ul { list-style: none; margin: 0; padding: 0; } li { padding: 6px 0; border-top: 1px solid var(--line); } li:first-child { border-top: 0; padding-top: 0; }
code { background: var(--code); border-radius: 5px; padding: 1px 6px; font: 13px/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
.way { margin-top: 4px; } .command { display: block; padding: 5px 9px; user-select: all; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; } th { text-align: left; color: var(--dim); font-weight: 500; }
th, td { padding: 4px 12px 4px 0; border-top: 1px solid var(--line); vertical-align: top; } tr:first-child th { border-top: 0; }
td.key { font-family: ui-monospace, monospace; font-size: 13px; overflow-wrap: anywhere; }
meter { width: 120px; height: 12px; vertical-align: middle; }
svg { display: block; width: 100%; min-width: 660px; max-width: 860px; margin: 0 auto; }
svg text { fill: var(--text); font: 13px system-ui, sans-serif; } svg .note, svg .column { fill: var(--dim); font-size: 11.5px; }
svg .column { text-anchor: middle; } svg rect { fill: var(--back); stroke: var(--line); }
svg circle { fill: currentColor; } svg .box:not(.converged) rect { stroke: currentColor; } svg .idle rect { stroke-dasharray: 4 3; stroke: var(--warn); }
svg .link { fill: none; stroke: var(--dim); stroke-width: 1.4; opacity: .65; }
svg .in_flight circle { animation: pulse 1.2s infinite; } @keyframes pulse { 50% { opacity: .2; } }
@media (prefers-reduced-motion: reduce) { svg .in_flight circle { animation: none; } }
@media (max-width: 600px) { #journal th:last-child, #journal td:last-child { display: none; } }
footer { color: var(--dim); font-size: 13px; padding: 4px 16px 28px; }
.offline { color: var(--bad); }
`;
