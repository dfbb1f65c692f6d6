// Sends bytes with their progress, which `fetch` does not report.
import { errorOf, inServerTime, unreachable, urlOf } from '../lib/api.js'
import { sha256 } from '../lib/signer.js'

/**
 * @param request { bucket, key, query?, headers? } of a PUT
 * @param bytes an ArrayBuffer; @param hash its SHA-256 in hexadecimal
 * @param onProgress takes the number of bytes that were sent so far
 * @returns the headers of the answer, by `get`. Throws ApiError, and AbortError at the signal.
 */
export function sendBytes(client, request, bytes, { hash, onProgress, signal }) {
  return inServerTime(client, async () => {
    const url = urlOf(client, request)
    const covered = hash ?? (await sha256(bytes))
    const headers = await client.signer.sign({ method: 'PUT', url, headers: request.headers, hash: covered })
    return put(client, url, headers, bytes, onProgress, signal)
  })
}

function put(client, url, headers, bytes, onProgress, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const request = new XMLHttpRequest()
    const abort = () => request.abort()
    signal.addEventListener('abort', abort)
    request.upload.onprogress = ({ loaded }) => onProgress(loaded)
    request.onloadend = () => signal.removeEventListener('abort', abort)
    request.onabort = () => reject(signal.reason)
    request.onerror = () => reject(unreachable(client))
    request.onload = () => {
      const answered = headersOf(request)
      if (request.status >= 200 && request.status < 300) resolve(answered)
      else errorOf(request.status, answered, request.responseText).then(reject, reject)
    }
    request.open('PUT', url)
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value)
    request.send(bytes)
  })
}

/** The headers that the page may read. To ask for another one by its name is an error in the console of the browser. */
function headersOf(request) {
  const lines = request.getAllResponseHeaders().trim().split('\r\n').filter(Boolean)
  return new Headers(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]))
}
