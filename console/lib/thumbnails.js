// Small pictures of images, made in the browser of their bytes.
import { send } from './api.js'
import { bytesOf } from './bytes.js'
import { pixelsOf } from './image-size.js'
import { isAtHand } from './s3.js'
import { isReachable } from './signer.js'
import { shownAs } from './sniff.js'

/** Largest image that a thumbnail is made of, bytes, and most pixels of it: decoded, each takes four bytes. */
const LARGEST = 10 * 1024 * 1024
const MOST_PIXELS = 40_000_000
/** Images that are read and decoded at the same time. */
const AT_ONCE = 4
const NAMES = /\.(png|jpe?g|gif|webp|avif)$/i

/** Whether a thumbnail of the object is worth a try: by what the listing says, so that nothing else is read. */
export function hasThumbnail({ name, folder, size, storageClass }) {
  return !folder && size > 0 && size <= LARGEST && NAMES.test(name) && isAtHand(storageClass) && isReachable(name)
}

/** Draws the image on a canvas, whole and in its middle. Resolves false for bytes that are no image. */
export function drawThumbnail(client, { bucket, key }, canvas, signal) {
  return inTurn(signal, async () => {
    const bytes = await bytesOf(await send(client, { bucket, key, signal }), LARGEST)
    const { kind, type } = shownAs(bytes, true) ?? {}
    if (kind !== 'image' || pixelsOf(bytes, type) > MOST_PIXELS) return false
    const image = await createImageBitmap(new Blob([bytes], { type }))
    try {
      if (!signal.aborted) draw(image, canvas)
    } finally {
      image.close()
    }
    return true
  })
}

function draw(image, canvas) {
  const side = Math.round(canvas.clientWidth * Math.min(devicePixelRatio, 2))
  const scale = Math.min(side / image.width, side / image.height, 1)
  canvas.width = canvas.height = side
  const [width, height] = [image.width * scale, image.height * scale]
  const pen = canvas.getContext('2d')
  pen.imageSmoothingQuality = 'high'
  pen.drawImage(image, (side - width) / 2, (side - height) / 2, width, height)
}

let running = 0
const waiting = []

/** Runs some work when others have ended; work that is not wanted any more never begins. */
async function inTurn(signal, work) {
  if (running >= AT_ONCE) await new Promise((resolve) => waiting.push(resolve))
  running++
  try {
    signal.throwIfAborted()
    return await work()
  } finally {
    running--
    waiting.shift()?.()
  }
}
