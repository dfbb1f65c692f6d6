import { html, useEffect, useRef, useState } from '../lib/html.js'
import { Menu } from '../parts/menu.js'
import { notifyError } from '../parts/notices.js'
import { filesOfDrop, filesOfInput } from '../uploads/chosen-files.js'
import { addFiles, onStored, uploads } from '../uploads/queue.js'

/**
 * What takes files for a folder of a bucket: buttons, and the whole page for those that are dropped.
 * @param more items for the menu behind them
 */
export function UploadButtons({ bucket, folder, onDone, onNewFolder, more: others = [] }) {
  const [files, directory] = [useRef(null), useRef(null)]
  const [keep, setKeep] = useState(false)
  const [over, setOver] = useState(false)
  const add = (found) => addFiles(found, { bucket, prefix: folder, replace: !keep })
  const taken = ({ current }) => {
    add(filesOfInput(current))
    current.value = ''
  }
  useEffect(() => onStored(bucket, () => uploads.value.length === 0 && onDone()), [bucket, folder])
  useDrop(setOver, add, [bucket, folder, keep])
  const more = [
    { text: 'Upload a folder', action: () => directory.current.click() },
    { text: 'Skip files that are there already', checked: keep, action: () => setKeep(!keep) },
    ...others,
  ]
  return html`<button type="button" onClick=${onNewFolder}>New folder</button>
    <button type="button" class="main" onClick=${() => files.current.click()}>Upload files</button>
    <${Menu} label="More ways to add" items=${more} />
    <input type="file" multiple hidden ref=${files} onChange=${() => taken(files)} />
    <input type="file" webkitdirectory hidden ref=${directory} onChange=${() => taken(directory)} />
    ${over && html`<p class="drop">Drop files and folders to upload them here</p>`}`
}

function useDrop(setOver, add, inputs) {
  useEffect(() => {
    const hasFiles = ({ dataTransfer }) => Array.from(dataTransfer?.types ?? []).includes('Files')
    const over = (event) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(true)
    }
    const leave = (event) => event.relatedTarget === null && setOver(false)
    const drop = (event) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      setOver(false)
      filesOfDrop(event.dataTransfer).then(add, notifyError)
    }
    const listeners = { dragover: over, dragleave: leave, drop }
    for (const [name, listener] of Object.entries(listeners)) document.addEventListener(name, listener)
    return () => {
      for (const [name, listener] of Object.entries(listeners)) document.removeEventListener(name, listener)
    }
  }, inputs)
}
