// Uploads in parts that a reload has interrupted: what they were, in IndexedDB. The bytes are at the server and in the file.

const STORE = 'uploads'
let opened

function open() {
  opened ??= settled(indexedDB.open('dealgate', 1), (request) => {
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: 'uploadId' })
  })
  return opened
}

function settled(request, before) {
  before?.(request)
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

async function store(mode) {
  return (await open()).transaction(STORE, mode).objectStore(STORE)
}

/** @param upload { uploadId, endpoint, bucket, key, replace, name, size, lastModified, partSize } */
export async function keepUpload(upload) {
  await settled((await store('readwrite')).put(upload))
}

export async function forgetUpload(uploadId) {
  await settled((await store('readwrite')).delete(uploadId))
}

/** Those of an endpoint. */
export async function keptUploads(endpoint) {
  const all = await settled((await store('readonly')).getAll())
  return all.filter((upload) => upload.endpoint === endpoint)
}
