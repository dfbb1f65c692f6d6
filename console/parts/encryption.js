import { html } from '../lib/html.js'

/** What is needed to open an encrypted object without the server. */
export function HowItOpens() {
  return html`<details>
    <summary>How it opens without this server</summary>
    <p>What the gateway, a CAR or a storage provider has is a file of the standard form age. With the keys of the server, which <code>dealgate encryption export</code> writes, this opens it on any machine:</p>
    <pre tabindex="0" role="region" aria-label="Commands">dealgate decrypt FILE.car --path KEY --encryption-keys safe.keys --output opened
age -d -i safe.keys -o opened FILE.age</pre>
    <p class="quiet">No server has to run. docs/encryption.md describes it.</p>
  </details>`
}

/**
 * How an object is encrypted, by the headers of its HEAD, as facts for `Facts`.
 * @param headers a Map; @returns [[name, text]]: one fact, with which key, or that it is not encrypted
 */
export function encryptionFacts(headers) {
  const algorithm = headers.get('x-amz-server-side-encryption')
  const keyId = headers.get('x-amz-server-side-encryption-aws-kms-key-id')
  if (headers.has('x-amz-server-side-encryption-customer-algorithm'))
    return [['Encryption', 'With a key of a client (SSE-C), which the server does not have']]
  if (algorithm === undefined) return [['Encryption', 'None: who has the bytes reads them']]
  if (algorithm === 'aws:kms') return [['Encryption', `By the server with the key ${keyId ?? 'aws/s3'} (aws:kms)`]]
  return [['Encryption', `By the server with its own key (${algorithm})`]]
}
