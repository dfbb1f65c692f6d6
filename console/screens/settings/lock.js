import { formatCount } from '../../lib/format.js'
import { html, useState } from '../../lib/html.js'
import { Element } from '../../lib/xml.js'
import { Check } from '../../parts/form.js'
import { State } from '../../parts/state.js'
import { Choice, Text } from './inputs.js'
import { Single } from './single.js'

export const MODES = [
  ['', 'None: each upload says for itself'],
  ['GOVERNANCE', 'GOVERNANCE: who has the right to bypass it may remove it'],
  ['COMPLIANCE', 'COMPLIANCE: nobody may remove or shorten it'],
]

/** What COMPLIANCE means, for those who are about to set it. @param time such as `30 days` */
export function ComplianceWords({ time }) {
  return html`<p>
      <strong>COMPLIANCE cannot be taken back.</strong> Every new version is kept for ${time}: until then nobody can delete it or
      shorten its time, neither you, nor the owner of the server, nor with any right.
    </p>
    <p>It takes space for that long, and the bucket cannot be deleted before. This default itself can be changed later, for versions that are stored after that.</p>`
}

/**
 * The inputs of a default retention.
 * @param retention of the element DefaultRetention; @param asks true where nothing else asks before COMPLIANCE is set
 */
export function RetentionFields({ retention, asks }) {
  const unitOf = retention?.child('Years') ? 'Years' : 'Days'
  const [mode, setMode] = useState(retention?.get('Mode') ?? '')
  return html`<${Choice} label="Default retention of new versions" name="Mode" of=${MODES} chosen=${mode} onChange=${(event) => setMode(event.target.value)} />
    ${
      mode !== '' &&
      html`<div class="columns">
        <${Text} label="Kept for" name="Time" type="number" min="1" required defaultValue=${retention?.get(unitOf) ?? '30'} />
        <${Choice} label="Unit" name="Unit" of=${['Days', 'Years'].map((unit) => [unit, unit.toLowerCase()])} chosen=${unitOf} />
      </div>`
    }
    ${mode === 'COMPLIANCE' && html`<div class="careful" role="status"><${ComplianceWords} time="the time that you state" />${asks && html`<${Check} label="I know that this cannot be taken back" input=${{ required: true }} />`}</div>`}`
}

/** The element Rule of the inputs; none without a mode. */
export function retentionOf(values) {
  const mode = values.get('Mode')
  if (!mode) return []
  return [
    new Element('Rule', [
      new Element('DefaultRetention', [new Element('Mode', mode), new Element(values.get('Unit'), values.get('Time'))]),
    ]),
  ]
}

export const timeWords = (values) =>
  formatCount(Number(values.get('Time')), values.get('Unit') === 'Years' ? 'year' : 'day')

/** Whether versions of a bucket can be locked, and for how long new ones are. */
export const lock = {
  name: 'Object lock',
  query: 'object-lock',
  root: 'ObjectLockConfiguration',
  absent: 'ObjectLockConfigurationNotFoundError',
  stays: true,
  hint: 'A locked version cannot be deleted before its time, and a legal hold keeps one until the hold is removed. Object lock needs versioning, and cannot be turned off once it is on.',
  View: Single,
  Fields: ({ value, saved }) => html`<p><${State} of=${saved === '' ? 'Off' : 'On: versions can be locked'} /></p>
    ${saved === '' && html`<p class="quiet">To save turns it on, for good.</p>`}
    <${RetentionFields} retention=${value.child('Rule')?.child('DefaultRetention')} />`,
  change(root, values) {
    root.replace('ObjectLockEnabled', ['Enabled'])
    root.replace('Rule', retentionOf(values))
  },
  ask(values, root, bucket) {
    if (values.get('Mode') === 'COMPLIANCE')
      return {
        title: 'Set a retention in COMPLIANCE mode',
        submit: 'Set it',
        word: bucket,
        text: html`<${ComplianceWords} time=${timeWords(values)} />`,
      }
    if (root.get('ObjectLockEnabled') === 'Enabled') return undefined
    return {
      title: 'Turn on object lock',
      submit: 'Turn it on',
      word: bucket,
      text: html`<p>Object lock cannot be turned off again, nor can versioning be suspended then.</p>`,
    }
  },
}
