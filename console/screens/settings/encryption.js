import { sendJson } from '../../lib/api.js'
import { html, useState } from '../../lib/html.js'
import { lineAt } from '../../lib/places.js'
import { without } from '../../lib/s3.js'
import { session } from '../../lib/session.js'
import { Element, parseXml } from '../../lib/xml.js'
import { HowItOpens } from '../../parts/encryption.js'
import { Check } from '../../parts/form.js'
import { Name } from '../../parts/name.js'
import { State } from '../../parts/state.js'
import { Choice, one, Text } from './inputs.js'
import { Single } from './single.js'

const DEFAULT = 'ApplyServerSideEncryptionByDefault'

export const ALGORITHMS = [
  ['', 'None: as they are sent, unless an upload asks for it'],
  ['AES256', 'AES256: with the newest key of the server'],
  ['aws:kms', 'aws:kms: with a key that has a name'],
]

/** The inputs of a default encryption. */
export function EncryptionFields({ algorithm: saved = '', keyId }) {
  const [algorithm, setAlgorithm] = useState(saved)
  return html`<${Choice} label="Encryption of new objects" name="SSEAlgorithm" of=${ALGORITHMS} chosen=${algorithm} onChange=${(event) => setAlgorithm(event.target.value)} />
    ${algorithm === 'aws:kms' && html`<${Text} label="Name of the key" hint="Empty: the key of the server. dealgate encryption rotate --name NAME makes one." name="KMSMasterKeyID" defaultValue=${keyId} />`}
    ${
      algorithm !== '' &&
      algorithm !== saved &&
      html`<div class="careful" role="status">
        <p><strong>Who loses the keys loses the objects.</strong> Without a key that opens it, nobody can read an encrypted object: no command, no operator and no storage provider. A backup has the keys only if it was made with <code>--with-keys</code>.</p>
        <p>Keep a copy apart from the server:</p>
        <pre tabindex="0" role="region" aria-label="Command">dealgate encryption export > safe.keys</pre>
        <${Check} label="There is a copy of the keys, or I will make one" input=${{ required: true }} />
      </div>`
    }`
}

/** The document of the inputs; undefined for none. */
export function encryptionOf(values, root = new Element('ServerSideEncryptionConfiguration')) {
  const algorithm = values.get('SSEAlgorithm')
  if (algorithm === '') return undefined
  const rule = root.child('Rule') ?? new Element('Rule')
  const byDefault = rule.child(DEFAULT) ?? new Element(DEFAULT)
  byDefault.replace('SSEAlgorithm', [algorithm])
  byDefault.replace('KMSMasterKeyID', algorithm === 'aws:kms' ? one(values, 'KMSMasterKeyID') : [])
  rule.replace(DEFAULT, [byDefault])
  root.replace('Rule', [rule])
  return root
}

/** A key that is not there yet is no error: S3 does not look for it either, and uploads fail until it comes. */
async function check(bucket, text) {
  const id = parseXml(text).get('Rule', DEFAULT, 'KMSMasterKeyID')
  if (!id || id === 'aws/s3') return []
  const query = { 'x-encryption': '', 'max-objects': 0, 'key-id': id }
  const answer = await sendJson(session.value, { bucket, query }).catch(
    without('NotImplemented', 'AccessDenied', 'InvalidArgument'),
  )
  if (answer?.KeyFound !== false) return []
  const message = 'The server has no key of this name: every upload to the bucket fails until there is one.'
  return [{ level: 'warning', line: lineAt(text, Math.max(text.indexOf('<KMSMasterKeyID'), 0)), message }]
}

/** What new objects of a bucket are encrypted with. */
export const encryption = {
  name: 'Encryption',
  query: 'encryption',
  root: 'ServerSideEncryptionConfiguration',
  absent: 'ServerSideEncryptionConfigurationNotFoundError',
  hint: 'What new objects are encrypted with, before they reach the gateway, a CAR or a storage provider. Objects that are there stay as they are.',
  check,
  View: Single,
  Fields({ value }) {
    const byDefault = value.child('Rule')?.child(DEFAULT)
    const [algorithm, keyId] = ['SSEAlgorithm', 'KMSMasterKeyID'].map((name) => byDefault?.get(name))
    return html`<p><${State} of=${algorithm ? `Encrypted with ${algorithm}` : 'Not encrypted'} />${algorithm && (keyId ? html`, by the key <${Name} text=${keyId} />` : ', by the newest key of the server')}</p>
      ${algorithm && html`<${HowItOpens} />`}
      <${EncryptionFields} algorithm=${algorithm} keyId=${keyId} />`
  },
  change: (root, values) => encryptionOf(values, root) ?? new Element(root.name),
}
