import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient, Stanza } from 'age-encryption'
import t from 'tap'
import { x25519Identity, x25519Recipient } from '../../../src/objects/encryption/x25519.js'

// The library has X25519 of its own, which is compared with that of Node.

t.test('what one wraps, the other opens', async (t) => {
  for (let i = 0; i < 20; i++) {
    const text = await generateX25519Identity()
    const recipient = await identityToRecipient(text)
    const identity = x25519Identity(text)
    t.equal(identity?.recipient, recipient)
    for (const [to, by] of [
      [x25519Recipient(recipient, Stanza), text],
      [recipient, identity],
    ] as const) {
      const encrypter = new Encrypter()
      encrypter.addRecipient(to ?? '')
      const decrypter = new Decrypter()
      decrypter.addIdentity(by ?? '')
      t.equal(await decrypter.decrypt(await encrypter.encrypt('content'), 'text'), 'content')
    }
  }
})

t.test('texts that are no keys of this kind', async (t) => {
  const text = await generateX25519Identity()
  const recipient = await identityToRecipient(text)
  const last = (one: string) => (one.endsWith('q') || one.endsWith('Q') ? 'p' : 'q')
  for (const wrong of [
    ...[text.toLowerCase(), text.slice(0, -1), `${text.slice(0, -1)}${last(text).toUpperCase()}`, `${text}Q`],
    ...['', 'AGE-SECRET-KEY-1', text.replace('KEY-1', 'KEY-PQ-1'), text.replace(/.{3}$/, 'B1O'), recipient],
  ])
    t.equal(x25519Identity(wrong), undefined, wrong)
  for (const wrong of [
    ...[recipient.toUpperCase(), recipient.slice(0, -1), `${recipient.slice(0, -1)}${last(recipient)}`],
    ...['', 'age1', recipient.replace('age1', 'age1pq1'), text],
  ])
    t.equal(x25519Recipient(wrong, Stanza), undefined, wrong)
})

t.test('stanzas that are malformed', async (t) => {
  const identity = x25519Identity(await generateX25519Identity())
  const body = new Uint8Array(32)
  const share = Buffer.alloc(32, 9).toString('base64').replace('=', '')
  t.equal(identity?.unwrapFileKey([new Stanza(['X25519', share], body), new Stanza(['other'], body)]), null)
  for (const [args, of] of [
    [['X25519'], body],
    [['X25519', share, 'more'], body],
    [['X25519', `${share}=`], body],
    [['X25519', share.slice(1)], body],
    [['X25519', share], new Uint8Array(31)],
    [['X25519', Buffer.alloc(32).toString('base64').replace('=', '')], body],
  ] as const)
    t.throws(() => identity?.unwrapFileKey([new Stanza([...args], of)]), args.join(' '))
})
