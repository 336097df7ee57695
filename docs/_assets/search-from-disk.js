// Browsers refuse workers to pages that are opened from disk, and the search runs in one: there it gets a hidden frame.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.frame = frame.contentWindow;
    this.frame.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
    const script = frame.contentDocument.createElement("script");
    this.ready = new Promise((resolve) => (script.onload = resolve));
    script.src = url;
    frame.contentDocument.head.append(script);
  }
  postMessage(data) {
    this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })));
  }
}
if (location.protocol === "file:") window.Worker = FrameWorker;
