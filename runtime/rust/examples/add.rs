//! Two vectors are added, and a kernel without its mask is found out.

const TEXT: &str = "
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n)
    tl.store(out + i, a + tl.load(y + i, mask=i < n), mask=i < n)

@triton.jit
def wrong(out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0)
";

fn main() -> Result<(), sdc::Error> {
    let x: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let y = vec![1f32; 1000];
    let mut out = vec![0f32; 1000];
    let module = sdc::Context::new()?.load_text("add.tk", TEXT)?;
    let add = module.function("add", &["BLOCK=256"])?;
    add.launch((4, 1, 1), &[(&x[..]).into(), (&y[..]).into(), (&mut out[..]).into(),
                            1000.into()])?;
    println!("{} + {} = {}", x[999], y[999], out[999]);

    let module = sdc::Context::checked()?.load_text("add.tk", TEXT)?;
    let wrong = module.function("wrong", &["BLOCK=256"])?;
    match wrong.launch((4, 1, 1), &[(&mut out[..]).into()]) {
        Err(e) => println!("{e}"),
        Ok(()) => println!("nothing was found"),
    }
    Ok(())
}
