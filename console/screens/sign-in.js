import { visibleText } from '../lib/format.js'
import { html, useEffect, useState } from '../lib/html.js'
import { endpointOf, signedOutBecause, signIn, signInUser } from '../lib/session.js'
import { Check, Field, Form } from '../parts/form.js'
import { Name } from '../parts/name.js'

/**
 * The form for the key pair, or why there can be none.
 * @param config as in config.json; @param takeReturn gives what an OpenID Connect issuer has added to the address
 */
export function SignIn({ config, takeReturn }) {
  const { oidc } = config
  return html`<main id="main" class="narrow">
    <h1>Sign in to dealgate</h1>
    ${signedOutBecause.value && html`<p class="problem" role="status">${signedOutBecause.value}</p>`}
    ${!globalThis.isSecureContext && html`<${Insecure} />`}
    ${globalThis.isSecureContext && oidc && html`<${Issuer} oidc=${oidc} takeReturn=${takeReturn} />`}
    ${globalThis.isSecureContext && html`<${KeyPair} config=${config} /><${User} />`}
  </main>`
}

/** The sign-in at the issuer: the button that leaves for it, and after the return what came of it. */
function Issuer({ oidc, takeReturn }) {
  const [returned] = useState(takeReturn)
  const [wishes, setWishes] = useState({})
  const [{ roles, signIn, problem, waits, leaves }, setState] = useState({ waits: returned !== undefined })
  useEffect(() => {
    if (returned === undefined) return
    const end = async () => {
      const { returnFromIssuer } = await import('../lib/oidc.js')
      const got = await returnFromIssuer(returned, oidc)
      if (got.roles.length === 1) await got.signIn(got.roles[0])
      else setState(got)
    }
    end().catch((error) => setState({ problem: error.message }))
  }, [])
  const host = new URL(oidc.issuer).host
  if (waits) return html`<p role="status">Signing in with <${Name} text=${host} />…</p>`
  if (roles) return html`<${Roles} roles=${roles} signIn=${signIn} />`
  const leave = async () => {
    setState({ leaves: true })
    try {
      const { leaveForIssuer } = await import('../lib/oidc.js')
      await leaveForIssuer(oidc, wishes)
    } catch (error) {
      setState({ problem: error.message })
    }
  }
  const wish = (name) => ({
    checked: wishes[name] === true,
    onChange: (event) => setWishes({ ...wishes, [name]: event.target.checked }),
  })
  const home = new URL(oidc.redirectUri)
  const at = (text) => html`<section aria-label="Sign in with the issuer">
    ${problem && html`<p class="problem" role="alert"><${Name} text=${problem} /></p>`} ${text}
  </section>`
  if (oidc.problem)
    return at(html`<p class="problem" role="status"><${Name} text=${oidc.problem} /> A key pair works without it.</p>`)
  // The issuer sends browsers back to one address, where alone this tab can find what it has kept.
  if (location.origin !== home.origin)
    return at(html`<p>The sign-in with <${Name} text=${host} /> works at <a href=${home.href}>${home.origin}</a>.</p>`)
  return at(html`<p><button type="button" class="main" disabled=${leaves} onClick=${leave}>Sign in with ${host}</button></p>
    <details>
      <summary>Options</summary>
      <${Check} label="Read only" hint="The session can then change nothing, whatever the role may do." input=${wish('readOnly')} />
      <${Check} label="Stay signed in in this tab" hint="Keeps the session until the tab is closed." input=${wish('stay')} />
    </details>
    <h2>Or with a key pair</h2>`)
}

/** A role is a key pair of the server, whose rights the session gets. */
function Roles({ roles, signIn }) {
  return html`<${Form} action=${(values) => signIn(values.get('role'))} submit="Sign in">
    <${Field} label="Role" kind="select" hint="The session has the rights of the key pair of this name." input=${{ name: 'role' }}>
      ${roles.map((role) => html`<option value=${role}>${visibleText(role)}</option>`)}
    <//>
  <//>`
}

function KeyPair({ config }) {
  const action = (values) => {
    const text = (name) => values.get(name)?.trim() || undefined
    const pair = { accessKeyId: text('id'), secretAccessKey: text('secret'), sessionToken: text('token') }
    return signIn(pair, { readOnly: values.has('read-only'), stay: values.has('stay') })
  }
  const plain = { spellcheck: false, autocapitalize: 'off' }
  return html`<${Form} action=${action} submit="Sign in">
      <${Field} label="Access key id" input=${{ name: 'id', required: true, autocomplete: 'username', ...plain }} />
      <${Field}
        label="Secret access key"
        input=${{ name: 'secret', type: 'password', required: true, autocomplete: 'current-password', ...plain }}
      />
      <details>
        <summary>I have temporary credentials</summary>
        <${Field}
          label="Session token"
          hint="Only with temporary credentials, such as those of dealgate login."
          input=${{ name: 'token', type: 'password', autocomplete: 'off', ...plain }}
        />
      </details>
      <${Check} label="Read only" hint="The session can then change nothing, whatever the key pair may do." input=${{ name: 'read-only' }} />
      <${Check} label="Stay signed in in this tab" hint="Keeps the session, not the key pair, until the tab is closed." input=${{ name: 'stay' }} />
    <//>
    <p class="quiet">
      The endpoint is ${endpointOf(config)}. Your browser signs each request. The key pair is used once, to get a session of
      12 hours, and is then forgotten. dealgate prints it when it starts for the first time and keeps it in
      <code> keys.json</code> of its data folder.
    </p>`
}

/** For users of the task platform, who have no key pair. */
function User() {
  const action = (values) =>
    signInUser(
      { email: values.get('email').trim(), password: values.get('password') },
      { readOnly: values.has('read-only'), stay: values.has('stay') },
    )
  return html`<details>
    <summary>I am a user of the task platform</summary>
    <${Form} action=${action} submit="Sign in by e-mail">
      <${Field} label="E-mail address" input=${{ name: 'email', type: 'email', required: true, autocomplete: 'email' }} />
      <${Field} label="Password" hint="Is used once, to get a session." input=${{ name: 'password', type: 'password', required: true, autocomplete: 'current-password' }} />
      <${Check} label="Only read" input=${{ name: 'read-only' }} />
      <${Check} label="Stay signed in here" hint="Keeps the session, not the password, until the tab is closed." input=${{ name: 'stay' }} />
    <//>
  </details>`
}

/** Browsers have the functions that make signatures only on https and on this machine. */
function Insecure() {
  return html`<div class="problem" role="alert">
    <p><strong>This page needs https.</strong></p>
    <p>
      The console signs its requests in your browser. Browsers offer the functions for that only to pages that came over
      https, or from the machine itself (<code>http://localhost</code>, <code>http://127.0.0.1</code>). Otherwise a
      third party between could change this page and take your key.
    </p>
    <p>Start dealgate with <code>--tls-cert</code> and <code>--tls-key</code>, or put a reverse proxy with https before it, or open a tunnel:</p>
    <pre>ssh -L 9001:127.0.0.1:9001 -L 9000:127.0.0.1:9000 ${location.hostname}</pre>
  </div>`
}
