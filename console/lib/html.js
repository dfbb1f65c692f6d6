// The one place that imports the packages: `html` makes elements from templates, without a build.
import { h, htm } from '../vendor/vendor.js'

export { computed, effect, render, signal, useEffect, useMemo, useRef, useState } from '../vendor/vendor.js'

export const html = htm.bind(h)
