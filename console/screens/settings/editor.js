import { html, useEffect, useRef, useState } from '../../lib/html.js'
import { refusalsOf, syntaxFindings } from '../../lib/places.js'
import { Confirm } from '../../parts/dialog.js'
import { Form } from '../../parts/form.js'
import { Name } from '../../parts/name.js'
import { inSentence } from './documents.js'

const LINES = [8, 28]

/**
 * A document as text, with what is wrong beside the line.
 * @param draft { text, findings } in place of the saved text; @param store takes the text, and whether to store it in
 *   spite of warnings, and resolves with findings
 */
export function Editor({ kind, saved, draft, store, reload }) {
  const [text, setText] = useState(draft?.text ?? saved)
  const [findings, setFindings] = useState(draft?.findings ?? [])
  const [removes, setRemoves] = useState(false)
  useEffect(() => {
    setText(draft?.text ?? saved)
    setFindings(draft?.findings ?? [])
  }, [saved, draft])
  const area = useRef(null)
  const save = async (sure) => {
    const wrong = syntaxFindings(text, kind.json)
    if (wrong.length > 0) return setFindings(wrong)
    try {
      setFindings(await store(text, sure))
    } catch (error) {
      // What the document does not explain is shown as any other failure.
      if (!(error.status >= 400 && error.status < 500) || /AccessDenied|Expired|NoSuchBucket/.test(error.code))
        throw error
      setFindings(refusalsOf(text, kind.json, error))
    }
  }
  const show = (line) => {
    const before =
      text
        .split('\n')
        .slice(0, line - 1)
        .join('\n').length + (line > 1 ? 1 : 0)
    area.current.focus()
    area.current.setSelectionRange(before, before + (text.split('\n')[line - 1]?.length ?? 0))
  }
  const onInput = (event) => {
    setText(event.target.value)
    setFindings([])
  }
  const warnings = findings.length > 0 && findings.every(({ level }) => level === 'warning')
  return html`<${Form} action=${() => save(false)} submit=${`Save ${inSentence(kind.name)}`} disabled=${text === saved}>
      ${saved === '' && html`<p class="quiet">There is none yet: write one.</p>`}
      <${Lines} kind=${kind} text=${text} findings=${findings} area=${area} onInput=${onInput} />
      <${Findings} findings=${findings} show=${show} />
    <//>
    ${warnings && html`<${Form} action=${() => save(true)} submit="Save it all the same" danger />`}
    <div class="buttons">
      <button type="button" onClick=${reload}>Read it again</button>
      ${saved !== '' && !kind.stays && html`<button type="button" class="danger" onClick=${() => setRemoves(true)}>Remove ${inSentence(kind.name)}…</button>`}
    </div>
    ${
      removes &&
      html`<${Confirm} title=${`Remove ${inSentence(kind.name)}`} submit="Remove" action=${() => store('', true)} onClose=${() => setRemoves(false)}>
        <p>To undo this, save the text again: copy it first.</p>
        <pre tabindex="0" role="region" aria-label="What is removed">${saved}</pre>
      <//>`
    }`
}

/** A text area with the numbers of its lines; those with findings have a mark. */
function Lines({ kind, text, findings, area, onInput }) {
  const numbers = useRef(null)
  // An error counts more than a warning about the same line.
  const wrong = new Map(
    [...findings].sort(({ level }) => (level === 'error' ? 1 : -1)).map(({ line, level }) => [line, level]),
  )
  const count = text.split('\n').length
  const scroll = ({ target }) => {
    numbers.current.scrollTop = target.scrollTop
  }
  return html`<div class="editor">
    <div class="line-numbers" aria-hidden="true" ref=${numbers}>
      ${Array.from({ length: count }, (_, i) => html`<div class=${wrong.get(i + 1)}>${{ error: '✕ ', warning: '! ' }[wrong.get(i + 1)]}${i + 1}</div>`)}
    </div>
    <textarea ref=${area} value=${text} onInput=${onInput} onScroll=${scroll} rows=${Math.min(Math.max(count + 1, LINES[0]), LINES[1])}
      wrap="off" spellcheck=${false} autocomplete="off" required aria-label=${`${kind.name}, ${kind.json ? 'JSON' : 'XML'}`}
      aria-invalid=${findings.length > 0 ? 'true' : undefined} />
  </div>`
}

/** What is wrong with a document. @param show takes the line of a finding */
function Findings({ findings, show }) {
  if (findings.length === 0) return null
  const refused = findings.some(({ level }) => level === 'error')
  return html`<div class="problem" role="alert">
    <p>${refused ? 'It cannot be saved so:' : 'It is not saved yet:'}</p>
    <ul>
      ${findings.map(
        ({ level, line, message, code }) => html`<li>
          ${line !== undefined && html`<button type="button" class="plain" onClick=${() => show(line)}>Line ${line}</button> `}
          ${level === 'error' ? 'Error' : 'Warning'}: <${Name} text=${message} />${code && html` (<${Name} text=${code} />)`}
        </li>`,
      )}
    </ul>
  </div>`
}
