// Pictures, by the browser: no decoder is needed beside it.
const load = (base64) => {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return createImageBitmap(new Blob([bytes], { type: "image/png" }));
};
const drawn = (image, width, height) => {
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(image, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
};
// The share of squares of 16 x 16 pixels whose colour differs by more than a tenth; small letters blur away.
const difference = async (a, b) => {
  const [one, two] = [await load(a), await load(b)];
  if (one.width !== two.width || one.height !== two.height) return 1;
  const [width, height] = [Math.ceil(one.width / 16), Math.ceil(one.height / 16)];
  const [first, second] = [drawn(one, width, height), drawn(two, width, height)];
  let differ = 0;
  for (let at = 0; at < first.length; at += 4) {
    const by = (channel) => Math.abs(first[at + channel] - second[at + channel]);
    if (Math.max(by(0), by(1), by(2)) > 26) differ += 1;
  }
  return (differ * 4) / first.length;
};
const crc = (bytes) => {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? 0xedb88320 : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
};
const number = (value) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const chunk = (kind, bytes) => {
  const body = [...new TextEncoder().encode(kind), ...bytes];
  return [...number(bytes.length), ...body, ...number(crc(body))];
};
// The 64 most frequent colours; every pixel gets the nearest of them.
const indexed = async (base64) => {
  const image = await load(base64);
  const { width, height } = image;
  const pixels = drawn(image, width, height);
  const counts = new Map();
  const key = (at) => (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
  for (let at = 0; at < pixels.length; at += 4) counts.set(key(at), (counts.get(key(at)) ?? 0) + 1);
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 64).map(([colour]) => colour);
  const known = new Map(palette.map((colour, i) => [colour, i]));
  const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
  const nearest = (colour) => {
    if (!known.has(colour)) {
      const of = parts(colour);
      const far = (other) => parts(other).reduce((sum, part, i) => sum + (part - of[i]) ** 2, 0);
      let best = 0;
      palette.forEach((other, i) => { if (far(other) < far(palette[best])) best = i; });
      known.set(colour, best);
    }
    return known.get(colour);
  };
  const rows = new Uint8Array(height * (width + 1));
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) rows[y * (width + 1) + 1 + x] = nearest(key((y * width + x) * 4));
  }
  const stream = new Blob([rows]).stream().pipeThrough(new CompressionStream("deflate"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  const png = [
    137, 80, 78, 71, 13, 10, 26, 10,
    ...chunk("IHDR", [...number(width), ...number(height), 8, 3, 0, 0, 0]),
    ...chunk("PLTE", palette.flatMap(parts)),
    ...chunk("IDAT", packed),
    ...chunk("IEND", []),
  ];
  let text = "";
  for (const byte of png) text += String.fromCharCode(byte);
  return btoa(text);
};
