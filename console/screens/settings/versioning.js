import { html } from '../../lib/html.js'
import { State } from '../../parts/state.js'
import { Choice, one } from './inputs.js'
import { Single } from './single.js'

const WORDS = { Enabled: 'On', Suspended: 'Suspended' }

/** Whether a bucket keeps what is overwritten and deleted. */
export const versioning = {
  name: 'Versioning',
  query: 'versioning',
  root: 'VersioningConfiguration',
  stays: true,
  isNone: (text) => !text.includes('<Status>'),
  hint: 'With versioning, an overwrite or a deletion keeps what was there before as an earlier version, which takes space until it is removed. Once on, it can be suspended, and not turned off.',
  View: Single,
  Fields: ({ value }) => {
    const status = value.get('Status')
    const [on, ...others] = Object.entries(WORDS)
    // There is no way back to a bucket that never had versions.
    return html`<p><${State} of=${WORDS[status] ?? 'Off'} /></p>
      <${Choice} label="State to be" name="Status" chosen=${status} of=${[on, ...(status ? others : [])]} />`
  },
  change: (root, values) => root.replace('Status', one(values, 'Status')),
  ask(values, root) {
    if (values.get('Status') !== 'Suspended' || root.get('Status') === 'Suspended') return undefined
    return {
      title: 'Suspend versioning',
      submit: 'Suspend',
      text: html`<p>From then on, an overwrite replaces the object for good, unless it is an earlier version already. Versions that are there stay. You can turn it on again.</p>`,
    }
  },
}
