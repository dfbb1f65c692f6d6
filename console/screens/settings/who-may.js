import { sendJson } from '../../lib/api.js'
import { html, useState } from '../../lib/html.js'
import { session } from '../../lib/session.js'
import { uriEncode } from '../../lib/signer.js'
import { Field, Form } from '../../parts/form.js'
import { Name } from '../../parts/name.js'
import { State } from '../../parts/state.js'

const ACTIONS = [
  's3:GetObject',
  's3:PutObject',
  's3:DeleteObject',
  's3:ListBucket',
  's3:GetObjectTagging',
  's3:GetBucketPolicy',
  's3:PutBucketPolicy',
  's3:DeleteBucket',
  'deal:CreateObjectDeal',
]

/** Asks the server whether a request would be allowed, by the saved policy and everything else that decides. */
export function WhoMay({ bucket }) {
  const [answer, setAnswer] = useState()
  const action = async (values, signal) => {
    setAnswer(undefined)
    const text = (name) => values.get(name).trim() || undefined
    const query = { key: values.get('key') || undefined, action: text('action'), 'access-key-id': text('id') }
    setAnswer(await sendJson(session.value, { path: `/-/access/v1/decisions/${uriEncode(bucket)}`, query, signal }))
  }
  const plain = { autocomplete: 'off', spellcheck: false }
  return html`<h3>Who may?</h3>
    <${Form} action=${action} submit="Ask">
      <div class="columns">
      <${Field} label="Access key id" hint="Empty: a request without a signature." input=${{ name: 'id', ...plain }} />
      <${Field} label="Action" input=${{ name: 'action', required: true, list: 'actions', defaultValue: ACTIONS[0], ...plain }} />
      <datalist id="actions">${ACTIONS.map((name) => html`<option value=${name} />`)}</datalist>
      <${Field} label="Key" hint="Empty for an action on the bucket." input=${{ name: 'key', ...plain }} />
      </div>
    <//>
    ${
      answer &&
      html`<p role="status">
        <${State} of=${answer.Decision} />: <${Name} text=${answer.Reason} /> (${answer.Principal === '*' ? 'everybody' : html`<${Name} text=${answer.Principal} />`})
      </p>`
    }`
}
