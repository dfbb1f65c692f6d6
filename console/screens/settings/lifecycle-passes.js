import { sendJson } from '../../lib/api.js'
import { formatBytes, formatCount } from '../../lib/format.js'
import { html } from '../../lib/html.js'
import { without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { pathOf } from '../../lib/signer.js'
import { Loaded, useLoaded } from '../../parts/load.js'
import { State } from '../../parts/state.js'
import { Facts, Table } from '../../parts/table.js'
import { Time } from '../../parts/time.js'

/** When the lifecycle rules of a bucket were applied, what they did, and what is due. */
export function LifecyclePasses({ bucket }) {
  const client = session.value
  const state = useLoaded(
    (signal) =>
      sendJson(client, { path: pathOf(bucket), query: { 'x-lifecycle': '' }, signal }).catch(without('NotImplemented')),
    [client, bucket],
  )
  return html`<section class="setting">
    <div class="setting-head">
      <h2>What the rules do</h2>
      <button type="button" onClick=${state.reload}>Refresh</button>
    </div>
    <${Loaded}
      of=${state}
      show=${(value) => {
        if (value === undefined) return html`<p class="quiet">This server does not tell what its rules have done.</p>`
        if (value.Rules === 0) return html`<p class="quiet">No rule of this bucket is on.</p>`
        return html`<h3>Last pass</h3><${LastPass} of=${value} /><h3>What expires</h3><${Due} of=${value} />`
      }}
    />
  </section>`
}

function LastPass({ of: { LastPass: pass, NextDay: next, Rules: rules } }) {
  if (!pass)
    return html`<p>The ${formatCount(rules, 'rule')} ${rules === 1 ? 'is' : 'are'} applied with the next pass, which comes at least every hour unless the server has another interval.</p>`
  const number = (name, word) => [word, pass[name] > 0 ? pass[name].toLocaleString() : undefined]
  return html`<${Facts}
    facts=${[
      ['Ended', html`<${Time} of=${pass.Ended} exact />`],
      [
        'State',
        html`<${State} of=${pass.Failed > 0 ? 'Failed in part' : pass.Complete ? 'Complete' : 'Ended early, and is repeated'} />`,
      ],
      ['Looked at', formatCount(pass.Scanned, 'object')],
      ['Expired', pass.Expired.toLocaleString()],
      number('Removed', 'Versions removed for good'),
      ['Moved to another class', pass.Transitioned.toLocaleString()],
      number('Aborted', 'Uploads aborted'),
      number('Locked', 'Stay because they are locked'),
      number('Refused', 'Stay because they are not encrypted'),
      number('Failed', 'Failed'),
      ['Next objects are due', html`<${Time} of=${next} exact />`],
    ]}
  />`
}

const columns = [
  { name: 'Within', cell: ({ Days }) => (Days === 1 ? 'a day' : `${Days} days`) },
  { name: 'Objects', number: true, cell: ({ Objects }) => Objects.toLocaleString() },
  { name: 'Bytes', number: true, cell: ({ Bytes }) => formatBytes(Bytes) },
]

function Due({ of: { Due: due, Looked: looked, More: more } }) {
  return html`<p class="quiet">Current objects that a rule removes, of ${more ? `the first ${formatCount(looked, 'object')}` : formatCount(looked, 'object')} in the bucket.</p>
    <${Table} caption="What expires" rows=${due} keyOf=${({ Days }) => Days} columns=${columns} />`
}
